//! lhscp: Copies files and trees over many lanes, verified and resumable.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(255)
}
