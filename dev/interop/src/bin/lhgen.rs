//! lhgen: the test stream as a remote command.
//!
//! lhgen make SIZE SEED    writes it to stdout
//! lhgen check SIZE SEED   reads stdin, says `ok SIZE` or what differs

use anyhow::{Context, Result, bail};
use interop::stream;
use std::io::{stdin, stdout};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, size, seed] = args.as_slice() else { bail!("usage: lhgen make|check SIZE SEED") };
    let size = size.parse().context("SIZE")?;
    let seed = seed.parse().context("SEED")?;
    match what.as_str() {
        "make" => stream::make(&mut stdout().lock(), size, seed)?,
        "check" => {
            stream::check(&mut stdin().lock(), size, seed)?;
            println!("ok {size}");
        }
        _ => bail!("make or check?"),
    }
    Ok(())
}
