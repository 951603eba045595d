//! `seeds DIR`: writes what each target starts from, `DIR/TARGET/NUMBER`, and prints the targets.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let corpus = PathBuf::from(std::env::args_os().nth(1).unwrap_or("corpus".into()));
    for target in fuzz::TARGETS {
        let dir = corpus.join(target.name);
        std::fs::create_dir_all(&dir)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{number}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
