//! What the code that makes results is, as a hash over what the compiler sees of it.
//!
//! Stored results are named by it, so that a result of other code is never taken for one of this,
//! while a comment, a sentence of documentation or a test makes none of them old. Build scripts
//! call [`of`]; nothing of this is in a program.

mod tokens;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokens::{Hash, Module};

/// What a kind of results is made by.
pub struct Makers {
    /// Crates of the workspace, by their folders in `crates`.
    pub crates: &'static [&'static str],
    /// Libraries of others whose version counts.
    pub libraries: &'static [&'static str],
    /// Libraries of those libraries whose version counts as well.
    pub beneath: &'static [&'static str],
    /// Libraries whose version does not, each with the reason.
    pub uncounted: &'static [(&'static str, &'static str)],
}

/// What a simulated run, and a generated trace, is made by.
pub const SIMULATOR: Makers = Makers {
    crates: &["aqm", "link", "scenario", "sim", "trace", "wire", "quic", "py"],
    libraries: &["hashbrown", "libm", "noq-proto", "quinn-proto", "rand_core", "rand_pcg"],
    beneath: &["chacha20", "rand"],
    uncounted: &[
        ("bytes", "holds what is sent"),
        ("etherparse", "writes headers into captures"),
        ("libc", "tells the memory that is used"),
        ("pyo3", "hands columns over"),
        ("roxmltree", "what is read is in the canonical scenario, as links"),
        ("schemars", "writes the schema"),
        ("serde", "what is read is the canonical scenario, which is in the name itself"),
        ("serde_json", "writes the schema and the catalogue"),
        ("strsim", "finds hints"),
        ("toml", "what is read is the canonical scenario, which is in the name itself"),
    ],
};

/// What a run with real packets is made by, beside the kernel and the machine, which no name tells.
pub const GATEWAY: Makers = Makers {
    crates: &["aqm", "link", "scenario", "sim", "trace", "wire", "gateway"],
    libraries: &["hashbrown", "libm", "rand_core", "rand_pcg", "nix", "rtrb", "signal-hook"],
    beneath: &[],
    uncounted: &[
        ("caps", "gives rights up"),
        ("clap", "reads the command line"),
        ("crc", "sums that receivers look at"),
        ("etherparse", "writes headers into captures"),
        ("httparse", "answers scrapes"),
        ("libc", "tells the memory that is used"),
        ("netlink-packet-core", "sets interfaces up"),
        ("netlink-packet-route", "sets interfaces up"),
        ("netlink-sys", "sets interfaces up"),
        ("prometheus-client", "answers scrapes"),
        ("roxmltree", "what is read is in the canonical scenario, as links"),
        ("schemars", "writes the schema"),
        ("seccompiler", "confines the process"),
        ("serde", "reads options"),
        ("serde_json", "writes what was measured"),
        ("serde_path_to_error", "says where an error is"),
        ("strsim", "finds hints"),
        ("toml", "reads options"),
    ],
};

/// Crates whose sentences count, too: they may be commands to other programs.
///
/// Elsewhere a string literal in which a word follows a word is for people: an error, a summary, what a
/// column means. What results are named by, and what is read, has no such; one that stands beside `=`,
/// `|` or `!`, as where it is compared, counts.
const COMMANDS: &[&str] = &["gateway"];

/// The hash, and the files it was made of.
pub struct Fingerprint {
    /// 64 bits.
    pub hash: u64,
    /// Sources and `Cargo.lock`.
    pub files: Vec<PathBuf>,
}

/// Hashes the makers as they are in the workspace at `root`.
///
/// # Errors
/// A file cannot be read or is no Rust; a library is not in `Cargo.lock`.
pub fn of(makers: &Makers, root: &Path) -> io::Result<Fingerprint> {
    let mut hash = Hash::default();
    let mut files = Vec::new();
    for name in makers.crates {
        hash.word(name);
        let source = root.join("crates").join(name).join("src");
        let starts = ["lib.rs", "main.rs"].map(|start| source.join(start));
        for start in starts.into_iter().filter(|start| start.exists()) {
            let mut waiting = vec![Module {
                file: start,
                folder: source.clone(),
                sentences: COMMANDS.contains(name),
            }];
            while let Some(module) = waiting.pop() {
                let text = fs::read_to_string(&module.file)?;
                let below = tokens::add(&text, &module, &mut hash)
                    .map_err(|problem| told(&module.file, &problem))?;
                files.push(module.file);
                waiting.extend(below);
            }
        }
    }
    let lock = root.join("Cargo.lock");
    let text = fs::read_to_string(&lock)?;
    for library in makers.libraries.iter().chain(makers.beneath) {
        let versions = versions(&text, library);
        if versions.is_empty() {
            return Err(told(&lock, &format!("no version of {library}")));
        }
        hash.word(library);
        versions.iter().for_each(|version| hash.word(version));
    }
    files.push(lock);
    Ok(Fingerprint { hash: hash.value(), files })
}

/// For a build script: sets the environment variable `name` to `VERSION+HASH`, and has it run again
/// when anything that counts may have changed.
///
/// A crate that was published has no workspace around it; its version then says what it is made by.
///
/// # Errors
/// As [`of`].
pub fn tell(makers: &Makers, name: &str) -> io::Result<()> {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let root = Path::new("../..");
    if !root.join("crates").exists() {
        println!("cargo:rustc-env={name}={version}");
        return Ok(());
    }
    let found = of(makers, root)?;
    for file in &found.files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rustc-env={name}={version}+{:016x}", found.hash);
    Ok(())
}

/// What a `Cargo.lock` says of a library: version, source and checksum of each that it has. One that is
/// patched keeps its version and has no checksum.
fn versions<'a>(lock: &'a str, library: &str) -> Vec<&'a str> {
    let wanted = format!("name = \"{library}\"");
    let mut lines = lock.lines();
    let mut found = Vec::new();
    while lines.by_ref().any(|line| line == wanted) {
        found.extend(lines.by_ref().take_while(|line| {
            ["version = ", "source = ", "checksum = "].iter().any(|key| line.starts_with(key))
        }));
    }
    found
}

fn told(file: &Path, problem: &str) -> io::Error {
    io::Error::other(format!("{}: {problem}", file.display()))
}
