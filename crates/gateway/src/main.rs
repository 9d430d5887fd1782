//! `bluewater-gateway`: real packets through any queue discipline.

mod commands;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use commands::{Bulk, Cli, Ctl, Run, Shell, Task};
use gateway::bridge::{Access, bridge, bypass, remove};
use gateway::control::{Group, Request, place};
use gateway::direction::DIRECTIONS;
use gateway::guard::Guarding;
use gateway::namespace::enter_user_namespace;
use gateway::record::{self, Allowed, Listener, Recording};
use gateway::renewal::{Wanted, keep};
use gateway::session::Forwarding;
use gateway::shell::{self, Out, run_bound, sweep_uplink};
use gateway::testbed::traffic::Received;
use gateway::testbed::{self, bench, traffic};
use gateway::trouble::{Trouble, said, say};
use gateway::{config, control, report};
use sim::results::table::Table;

/// The command of a gateway between two interfaces.
const RUN: &str = "run";

/// Bad input, or something missing.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = config::expand(std::env::args_os().collect(), &Cli::command(), RUN);
    let code = args.and_then(|args| run(parsed(args).command)).unwrap_or_else(|trouble| {
        say(trouble.to_string());
        ExitCode::from(BAD_INPUT)
    });
    said();
    code
}

/// Reads the command line. If an option stands without its command, the message names the commands.
fn parsed(args: Vec<OsString>) -> Cli {
    let task = args.get(1).map(|task| task.to_string_lossy().into_owned()).unwrap_or_default();
    let first = task.starts_with("--");
    Cli::try_parse_from(args).unwrap_or_else(|mut error| {
        let unknown = error.kind() == ErrorKind::UnknownArgument;
        let meant = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(option)) if unknown => {
                config::of_one_way(option, &task).or_else(|| config::called_otherwise(option))
            }
            _ => None,
        };
        if meant.is_some() {
            error.remove(ContextKind::SuggestedArg); // by its letters, and another
        }
        _ = error.print();
        if let Some(meant) = meant {
            say(format!("hint: {meant}"));
        }
        if unknown && first {
            say("hint: the command comes first: `bluewater-gateway run --lan …` is the gateway");
        }
        said();
        std::process::exit(error.exit_code())
    })
}

/// Prints a result; its reader may be gone.
fn print(line: impl Display) {
    _ = writeln!(io::stdout(), "{line}");
}

fn run(task: Task) -> Result<ExitCode, Trouble> {
    match task {
        Task::Shell(options) => shell(&options),
        Task::Join { name, end, command } => {
            let code = shell::join(&name, end, &command)?;
            Ok(ExitCode::from(code as u8))
        }
        Task::Run(options) => between(&options),
        Task::Bypass { off, config } => {
            let [lan, wan] = config::ports(config)?;
            let names = [&lan[..], &wan[..]];
            if off { remove(names) } else { bypass(names) }?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Ctl { user, name, what } => {
            if let Ctl::Upgrade = what {
                print(control::upgrade(&name, user)?);
                return Ok(ExitCode::SUCCESS);
            }
            let saves = matches!(what, Ctl::Save);
            let request = match what {
                Ctl::Show { classes } => Request::Show { classes },
                Ctl::Save | Ctl::Upgrade => Request::Show { classes: false },
                Ctl::Set(change) => Request::Set(change),
            };
            let answer = control::ask(&name, user, &request)?;
            if saves {
                print(control::saved(&answer).trim_end());
                return Ok(ExitCode::SUCCESS);
            }
            let change = match &request {
                Request::Set(change) => Some(&**change),
                _ => None,
            };
            if io::stdout().is_terminal() {
                print(control::told(&answer, change));
            } else {
                print(answer);
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Testbed(options) => {
            let specs = options.link.specs()?;
            let plan = options.plan()?;
            enter_user_namespace()?;
            print(testbed::run(&specs, &plan)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Bench { time } => {
            bench::bench(time, print)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Replay { recording, any_buffer, packets } => replay(&recording, any_buffer, packets),
        Task::Bulk(options) => bulk(&options),
        Task::Sink { port } => sink(port),
        Task::Bound { confined, parent, dns, command } => {
            let (code, trouble) = run_bound(&parent, confined, &dns, &command);
            if let Some(trouble) = trouble {
                say(trouble.to_string());
            }
            Ok(ExitCode::from(code as u8))
        }
        Task::Keep { port, arguments } => {
            keep(port, &arguments, || wanted(&arguments));
            Ok(ExitCode::SUCCESS)
        }
        Task::SweepUplink { interface } => {
            sweep_uplink(&interface);
            Ok(ExitCode::SUCCESS)
        }
        Task::Sweep { file, number } => {
            place::sweep(&file, number);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A check failed.
const FAILED: u8 = 1;

/// Runs a command behind a link; its exit code is ours.
fn shell(options: &Shell) -> Result<ExitCode, Trouble> {
    let specs = options.link.specs()?;
    let how = options.run.forwarding(options.link.inputs())?;
    let ends = (options.mtu, options.ecn);
    let dns = options.dns.iter().copied().map(IpAddr::V4).collect();
    let out = Out { wanted: options.uplink, dns };
    let (code, finished) = shell::shell(&specs, &how, ends, &options.command, &options.far, &out)?;
    if !options.run.quiet {
        say(report::table(&finished));
    }
    Ok(ExitCode::from(code as u8))
}

/// What a command line of `run` asks for now.
fn wanted(arguments: &[OsString]) -> Result<Wanted, Trouble> {
    let args = [OsString::new()].into_iter().chain(arguments.iter().cloned()).collect();
    let args = config::expand(args, &Cli::command(), RUN)?;
    let refused = |e: clap::Error| Trouble::new(e.to_string().trim(), "");
    let Task::Run(options) = Cli::try_parse_from(args).map_err(refused)?.command else {
        return Err(Trouble::new("this is no gateway between two interfaces", ""));
    };
    let Run { lan, wan, plane, open_host, keep_carrier, group, group_may, link, run, .. } =
        &*options;
    let config = options.config.clone();
    let inputs = link.inputs().chain(&config);
    let how = run.forwarding(inputs).map_err(|e| e.by(config.as_deref()))?;
    Ok(Wanted {
        specs: link.specs().map_err(|e| e.by(config.as_deref()))?,
        config,
        files: [how.log, how.pcapng.map(|(path, _)| path)],
        rest: format!("{:?}", (lan, wan, plane, open_host, keep_carrier, group, group_may, run)),
        guarding: Guarding { pass_on: !keep_carrier, shut: !open_host },
    })
}

/// A link between two interfaces.
fn between(options: &Run) -> Result<ExitCode, Trouble> {
    let file = options.config.as_deref();
    let specs = options.link.specs().map_err(|e| e.by(file))?;
    let inputs = options.link.inputs().chain(&options.config);
    let how = options.run.forwarding(inputs).map_err(|e| e.by(file))?;
    let may = options.group_may;
    let how = Forwarding { group: options.group.map(|gid| Group { gid, may }), ..how };
    let access = Access { plane: options.plane, open_host: options.open_host };
    let names = [&options.lan[..], &options.wan];
    let finished = bridge(&specs, &how, names, file, access, options.take_over)?;
    if !options.run.quiet {
        say(report::table(&finished));
    }
    Ok(if finished.conserved { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Sends over connections, for some time.
fn bulk(options: &Bulk) -> Result<ExitCode, Trouble> {
    let to = SocketAddr::new(options.to, options.port);
    let failed = |e: io::Error| Trouble::system("sending", e);
    let streams = traffic::open(to, options.flows.into(), options.congestion.as_deref());
    let streams = streams.map_err(failed)?;
    let all = streams.len() == usize::from(options.flows);
    eprintln!("{} of {} connections were made", streams.len(), options.flows);
    let stop = Arc::new(AtomicBool::new(false));
    let after = Arc::clone(&stop);
    let time = std::time::Duration::from_nanos(options.time.as_nanos());
    thread::spawn(move || {
        thread::sleep(time);
        after.store(true, Ordering::Relaxed);
    });
    traffic::send(streams, &stop).map_err(failed)?;
    Ok(ExitCode::from(u8::from(!all)))
}

/// Receives what others send, and throws it away.
fn sink(port: u16) -> Result<ExitCode, Trouble> {
    let listener = TcpListener::bind(("::", port))
        .or_else(|_| TcpListener::bind(("0.0.0.0", port)))
        .map_err(|e| Trouble::system(format!("listening at port {port}"), e))?;
    traffic::receive(&listener, &AtomicBool::new(false), &Received::default())
        .map_err(|e| Trouble::system("receiving", e))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the summaries of both directions as JSON, before them `packets` if wanted; whether the decisions are those recorded goes to
/// stderr and into the exit code.
fn replay(path: &Path, any_buffer: bool, packets: bool) -> Result<ExitCode, Trouble> {
    let broken = |e: io::Error| Trouble::system(path.display(), e);
    let file = File::open(path).map_err(broken)?;
    let mut allowed = Allowed::of(file.metadata().map_err(broken)?.len());
    if any_buffer {
        allowed = allowed.any_buffer();
    }
    let mut recording = Recording::new(BufReader::new(file)).map_err(broken)?;
    let mut told = |direction, rows: &Table| {
        writeln!(io::stdout(), "{}", report::packets(DIRECTIONS[direction], rows))
    };
    let told: Option<Listener<'_>> = if packets { Some(&mut told) } else { None };
    let replayed = record::replay(&mut recording, allowed, told).map_err(broken)?;
    if replayed.recorded.is_none() {
        let (arrivals, seconds) = (replayed.arrivals, replayed.last as f64 / 1e9);
        say(format!("the recording breaks off after {arrivals} arrivals, at {seconds:.6} s"));
    }
    let mut same = true;
    for (i, (hash, summary)) in replayed.queues.into_iter().enumerate() {
        let name = DIRECTIONS[i];
        if let Some(summary) = summary {
            let mut line = report::queue(name, &recording.specs[i].aqm, &summary);
            line["decision_hash"] = hash.clone().into();
            print(line);
        }
        match replayed.recorded.as_ref().map(|hashes| &hashes[i]) {
            None => say(format!("{name}: there is no decision hash to compare with")),
            Some(recorded) if *recorded == hash => {
                say(format!("{name}: the same decisions ({hash})"));
            }
            Some(recorded) => {
                say(format!("{name}: other decisions: recorded {recorded}, replayed {hash}"));
                same = false;
            }
        }
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
