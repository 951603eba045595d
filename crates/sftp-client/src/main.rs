//! lhsftp: The SFTP client, interactive and in batches.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(255)
}
