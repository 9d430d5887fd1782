//! Names the build after what it simulates: `VERSION+HASH`, the hash over the sources of the
//! simulator and of what reads and makes traces. Stored results carry this name, so that a result of other code is never taken for one
//! of this.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in [
        "../aqm/src",
        "../link/src",
        "../scenario/src",
        "../sim/src",
        "../trace/src",
        "../wire/src",
    ] {
        println!("cargo:rerun-if-changed={source}");
        let mut files = Vec::new();
        collect(Path::new(source), &mut files)?;
        files.sort();
        for file in files {
            file.to_string_lossy().hash(&mut hasher);
            fs::read(&file)?.hash(&mut hasher);
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo:rustc-env=BLUEWATER_VERSION={version}+{:08x}", hasher.finish() as u32);
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
