//! Prints comparisons of the simulator with closed forms, with ns-2.35, with Linux 6.1 and with udp_prague,
//! and with a testbed, as Markdown tables: all, or the parts named. Exit code 1 if one does not hold.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use validation::packetdrill::{self, Counts, Script, script};
use validation::parts::{PARTS, measure};
use validation::{Setting, table};

/// Where the table of packetdrill's scripts is kept.
const PACKETDRILL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/packetdrill.csv");

/// Reads packetdrill's scripts from `folder`, drives them and writes the table. Exit code 1 if a step differs for
/// which no reason is written there.
fn packetdrill(folder: &str) -> ExitCode {
    let written = write_packetdrill(folder);
    match written {
        Ok(unexplained) => ExitCode::from(u8::from(unexplained > 0)),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn write_packetdrill(folder: &str) -> Result<usize, Box<dyn Error>> {
    let read = script::folder(Path::new(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let before = Script::all(&fs::read_to_string(PACKETDRILL)?)?;
    let table = packetdrill::table(&read.scripts, &before)?;
    fs::write(PACKETDRILL, &table)?;
    for (name, why) in &read.unfit {
        eprintln!("left out: {name}: {why}");
    }
    let counts = Counts::of(&Script::all(&table)?);
    eprintln!("{counts}; {} scripts left out", read.unfit.len());
    Ok(counts.unexplained)
}

fn main() -> ExitCode {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if let [part, folder] = &parts[..]
        && part == "packetdrill"
    {
        return packetdrill(folder);
    }
    if parts.iter().any(|p| PARTS.iter().all(|(name, _)| name != p)) {
        let known = PARTS.map(|(name, _)| format!("[{name}]")).join(" ");
        eprintln!(
            "usage: bluewater-validate {known}\n       bluewater-validate packetdrill FOLDER"
        );
        return ExitCode::from(2);
    }
    let wanted =
        PARTS.into_iter().filter(|(name, _)| parts.is_empty() || parts.iter().any(|p| p == name));
    let settings: Vec<Setting> = wanted.flat_map(|(_, settings)| settings()).collect();
    let cases = match measure(&settings) {
        Ok(cases) => cases,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let mut group = "";
    for case in &cases {
        if case.group != group {
            group = case.group;
            println!("{}", table::head(group));
        }
        println!("{}", table::row(case));
    }
    let failed = cases.iter().filter(|c| !c.holds()).count();
    eprintln!("{} comparisons, {failed} differ", cases.len());
    ExitCode::from(u8::from(failed > 0))
}
