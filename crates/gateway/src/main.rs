//! `bluewater-gateway`: real packets through any queue discipline.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use aqm::Duration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};
use gateway::bridge::{Access, Plane, bridge, bypass, remove};
use gateway::control::place::SWEEP;
use gateway::control::{Request, place};
use gateway::direction::DIRECTIONS;
use gateway::guard::{Guarding, Identity};
use gateway::namespace::ends::End;
use gateway::namespace::enter_user_namespace;
use gateway::options::{Change, LinkOptions};
use gateway::privilege::RealTime;
use gateway::record::{self, Allowed, Listener, Recording};
use gateway::renewal::{KEEP, Wanted, keep};
use gateway::session::Forwarding;
use gateway::shell::{self, BOUND, Out, SWEEP_UPLINK, run_bound, sweep_uplink};
use gateway::testbed::datagrams::Blast;
use gateway::testbed::traffic::Received;
use gateway::testbed::{self, Plan, bench, traffic};
use gateway::text::{text, whole};
use gateway::trouble::{Trouble, said, say};
use gateway::{config, control, report};
use nix::unistd::Uid;
use sim::results::table::Table;

/// Real packets through any queue discipline.
#[derive(Parser, Debug)]
#[command(version = env!("BLUEWATER_VERSION"), about)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Run a command behind an emulated link, in network namespaces of its own.
    Shell(Box<Shell>),
    /// Run another command at an end of the link of a shell that runs.
    Join {
        /// The shell: its --name, or else the number in its BLUEWATER_NAME.
        name: String,
        /// Near, beside the shell's command, or far, across the link from it.
        #[arg(long, value_enum, default_value_t = End::Near)]
        end: End,
        /// The command. It is ended with the shell.
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
    /// Put an emulated link between two Ethernet interfaces, until Ctrl-C.
    #[command(args_override_self = true)]
    Run(Box<Run>),
    /// Let packets pass by a bridge of the kernel while no gateway runs.
    Bypass {
        /// Take the bridge away.
        #[arg(long)]
        off: bool,
        /// The file that `run --config` takes: `lan` and `wan` are its interfaces.
        config: PathBuf,
    },
    /// Ask or change a gateway or a shell that runs.
    Ctl {
        /// Whose gateway it is, by name or number, if it is not yours: for root.
        #[arg(long, value_parser = control::user)]
        user: Option<Uid>,
        /// The gateway: its --name, or else its process number.
        name: String,
        #[command(subcommand)]
        what: Ctl,
    },
    /// Measure the kernel's TCP over an emulated link: a JSON object on stdout.
    Testbed(Box<Testbed>),
    /// Measure how precise and how fast the gateway is here, compared with the kernel's own forwarding.
    Bench {
        /// How long each measurement takes.
        #[arg(long, default_value = "2s", value_parser = text::<Duration>)]
        time: Duration,
    },
    /// Run recorded arrivals through the simulator's queue and compare the decisions.
    Replay {
        /// A file that `--record` wrote.
        recording: PathBuf,
        /// Accept a buffer far larger than the recording, too; it needs up to 1.5 GB.
        #[arg(long)]
        any_buffer: bool,
        /// Print the fate of each packet before the summaries: each line of JSON holds some packets of one
        /// queue, a list for each column.
        #[arg(long)]
        packets: bool,
    },
    /// Send on bulk TCP connections to a `sink`.
    Bulk(Bulk),
    /// Receive what `bulk` sends.
    Sink {
        /// Where to listen.
        #[arg(long, default_value_t = traffic::PORT, value_parser = whole(0..=u16::MAX))]
        port: u16,
    },
    #[command(name = BOUND, hide = true)]
    Bound {
        #[arg(long)]
        confined: bool,
        /// Where in `/proc` its parent is.
        #[arg(long)]
        parent: String,
        /// Name servers to ask.
        #[arg(long)]
        dns: Vec<IpAddr>,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    #[command(name = KEEP, hide = true)]
    Keep {
        /// The ports.
        #[arg(long)]
        port: Vec<Identity>,
        /// The command line of the gateway.
        #[arg(last = true, required = true)]
        arguments: Vec<OsString>,
    },
    #[command(name = SWEEP_UPLINK, hide = true)]
    SweepUplink { interface: String },
    #[command(name = SWEEP, hide = true)]
    Sweep { file: String, number: u64 },
}

#[derive(Subcommand, Debug)]
enum Ctl {
    /// Its settings, counts and signals: a line of JSON, or at a terminal some for people.
    Show,
    /// Print the options that its links have now, as a file for `run --config`.
    Save,
    /// Change its links. Nothing is lost: what is queued leaves first.
    Set(Box<Change>),
}

/// The command is at the near end of the link; it sees the far end, and nothing else, at the address
/// in BLUEWATER_FAR.
#[derive(Args, Debug)]
struct Shell {
    #[command(flatten)]
    link: LinkOptions,
    #[command(flatten)]
    run: RunOptions,
    /// Longest IP packet in bytes.
    #[arg(long, default_value_t = 1500, value_parser = whole(1280..=9000_u32))]
    mtu: u32,
    /// Let TCP at both ends ask for ECN (tcp_ecn=1); else it only answers.
    #[arg(long)]
    ecn: bool,
    /// Let the command reach the network of this machine through the link, by NAT at its far end: as
    /// root by nftables, else by pasta.
    #[arg(long)]
    uplink: bool,
    /// The name server that it asks then, an IPv4 address; again for more. This machine's if not given.
    #[arg(long, value_name = "ADDRESS", requires = "uplink", value_parser = shell::name_server)]
    dns: Vec<Ipv4Addr>,
    /// A line for sh that runs at the far end as long as the command does; again for more.
    #[arg(long = "far", value_name = "LINE")]
    far: Vec<String>,
    /// The command.
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// Frames go from one interface to the other unchanged, except for ECN marks. This machine's own network
/// stack gets none of them.
#[derive(Args, Debug)]
struct Run {
    /// The interface that the way up comes from.
    #[arg(long)]
    lan: String,
    /// The interface that the way up goes to.
    #[arg(long)]
    wan: String,
    /// How frames come and go.
    #[arg(long, value_enum, default_value_t = Plane::Auto)]
    plane: Plane,
    /// Let this machine's own network stack have the frames that come in, too. It then answers and routes
    /// them beside the link.
    #[arg(long)]
    open_host: bool,
    /// Leave the other interface up when one loses its carrier; else it is taken down as long, so that
    /// who is there sees it.
    #[arg(long)]
    keep_carrier: bool,
    /// Take options from a TOML file: `rate = "10mbit"`, and parameters in a table `[param]`. Those
    /// given here override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    link: LinkOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// Connections of the kernel's own TCP.
#[derive(Args, Debug)]
struct Bulk {
    /// The sink's address.
    to: IpAddr,
    /// Its port.
    #[arg(long, default_value_t = traffic::PORT, value_parser = whole(0..=u16::MAX))]
    port: u16,
    /// How many connections.
    #[arg(long, default_value_t = 1, value_parser = whole(1..=u16::MAX))]
    flows: u16,
    /// How long.
    #[arg(long, default_value = "10s", value_parser = text::<Duration>)]
    time: Duration,
    /// Congestion control: reno, cubic, bbr. The kernel's default if not given.
    #[arg(long)]
    congestion: Option<String>,
}

/// A sender, the link and a receiver, each in a network namespace of its own.
#[derive(Args, Debug)]
struct Testbed {
    #[command(flatten)]
    link: LinkOptions,
    /// How many connections.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u16::MAX))]
    flows: u16,
    /// Congestion control: reno, cubic, bbr.
    #[arg(long, default_value = "reno")]
    congestion: String,
    /// Also send datagrams of 1500 B at this rate, which losses do not slow down; `5mbit,ect` for ECN-capable
    /// ones, ECT(0). Again for more flows.
    #[arg(long, value_name = "RATE[,ect]", value_parser = text::<Blast>)]
    udp: Vec<Blast>,
    /// Selective acknowledgements.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    sack: bool,
    /// TCP asks for ECN.
    #[arg(long)]
    ecn: bool,
    /// How long in all, once the connections are made.
    #[arg(long, default_value = "12s", value_parser = text::<Duration>)]
    duration: Duration,
    /// How much of that is not measured.
    #[arg(long, default_value = "2s", value_parser = text::<Duration>)]
    warmup: Duration,
    /// Time between samples of the queue; none if 0.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    interval: Duration,
}

impl Testbed {
    fn plan(&self) -> Result<Plan, Trouble> {
        if self.flows == 0 && self.udp.is_empty() {
            return Err(Trouble::new(
                "--flows 0: there is nothing to send",
                "1 or more, or --udp RATE",
            ));
        }
        if self.warmup >= self.duration {
            return Err(Trouble::new("--warmup leaves nothing to measure", "less than --duration"));
        }
        if self.interval > Duration::ZERO {
            interval(self.interval)?;
        }
        Ok(Plan {
            flows: self.flows.into(),
            blasts: self.udp.clone(),
            congestion: self.congestion.clone(),
            sack: self.sack,
            ecn: self.ecn,
            warmup: self.warmup,
            window: Duration::from_nanos(self.duration.as_nanos() - self.warmup.as_nanos()),
            interval: self.interval,
        })
    }
}

/// How to forward and what to write.
#[derive(Args, Debug)]
struct RunOptions {
    /// Name of this gateway for `ctl`; if not given, its process number or the next free one.
    #[arg(long, value_parser = control::name)]
    name: Option<String>,
    /// Serve OpenMetrics at this port of 127.0.0.1; 0 picks a free one and prints it.
    #[arg(long, value_name = "PORT", value_parser = control::metrics::port)]
    metrics: Option<u16>,
    /// Show a live page with sliders at this port of 127.0.0.1, or at another address; 0 picks a free port.
    /// Prints the page's address, which nobody else can guess.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = control::web::address)]
    web: Option<SocketAddr>,
    /// Whether forwarding goes before all other work of the machine (SCHED_FIFO).
    #[arg(long, value_enum, default_value_t = RealTime::Auto)]
    realtime: RealTime,
    /// Watch the clock instead of sleeping for this long before each departure: 50us.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    spin: Duration,
    /// Write counts and events to a file, as JSON lines.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Record the arrivals at the queues, for `replay`.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Write packets and their fate, with the cause of each drop and mark as comment.
    #[arg(long)]
    pcapng: Option<PathBuf>,
    /// Write only one packet in this many to --pcapng.
    #[arg(long, default_value_t = 1, requires = "pcapng", value_parser = whole(1..=u32::MAX))]
    sample: u32,
    /// Time between lines of the log.
    #[arg(long, default_value = "1s", value_parser = text::<Duration>)]
    interval: Duration,
    /// No summary at the end.
    #[arg(long)]
    quiet: bool,
}

impl RunOptions {
    /// `inputs` are the files that the command line names to be read.
    fn forwarding<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<Forwarding, Trouble> {
        interval(self.interval)?;
        let identity = |path: &PathBuf| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        let inputs: Vec<_> = inputs.into_iter().filter_map(identity).collect();
        for output in [&self.log, &self.record, &self.pcapng].into_iter().flatten() {
            if identity(output).is_some_and(|output| inputs.contains(&output)) {
                return Err(Trouble::new(
                    format!("{}: it is read, and cannot be written, too", output.display()),
                    "name another file for --log, --record or --pcapng",
                ));
            }
        }
        Ok(Forwarding {
            name: self.name.clone(),
            metrics: self.metrics,
            web: self.web,
            realtime: self.realtime,
            spin: self.spin.as_nanos(),
            log: self.log.clone(),
            record: self.record.clone(),
            pcapng: self.pcapng.clone().map(|path| (path, self.sample)),
            interval: self.interval.as_nanos(),
        })
    }
}

/// Whether samples may be taken so often.
fn interval(interval: Duration) -> Result<(), Trouble> {
    if interval < Duration::from_millis(1) {
        let what = format!("--interval {interval}: samples would take all the time");
        return Err(Trouble::new(what, "1ms or more"));
    }
    Ok(())
}

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
            let saves = matches!(what, Ctl::Save);
            let request = match what {
                Ctl::Show | Ctl::Save => Request::Show {},
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
            keep(port, || wanted(&arguments));
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
    let Run { lan, wan, plane, open_host, keep_carrier, link, run, .. } = &*options;
    let how = run.forwarding(link.inputs().chain(&options.config))?;
    Ok(Wanted {
        specs: link.specs()?,
        files: [how.log, how.pcapng.map(|(path, _)| path)],
        rest: format!("{:?}", (lan, wan, plane, open_host, keep_carrier, run)),
        guarding: Guarding { pass_on: !keep_carrier, shut: !open_host },
    })
}

/// A link between two interfaces.
fn between(options: &Run) -> Result<ExitCode, Trouble> {
    let specs = options.link.specs()?;
    let how = options.run.forwarding(options.link.inputs().chain(&options.config))?;
    let access = Access { plane: options.plane, open_host: options.open_host };
    let finished = bridge(&specs, &how, [&options.lan, &options.wan], access)?;
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
