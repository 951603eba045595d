//! lhsftp-server: The SFTP server on standard input and output.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(255)
}
