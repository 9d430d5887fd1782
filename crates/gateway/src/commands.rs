//! The command line: commands and their options.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use aqm::Duration;
use clap::{ArgAction, Args, Parser, Subcommand};
use gateway::bridge::Plane;
use gateway::control::place::SWEEP;
use gateway::control::{self, May};
use gateway::guard::Identity;
use gateway::namespace::ends::End;
use gateway::options::{Change, LinkOptions};
use gateway::privilege::RealTime;
use gateway::renewal::KEEP;
use gateway::session::Forwarding;
use gateway::shell::{self, BOUND, SWEEP_UPLINK};
use gateway::testbed::datagrams::Blast;
use gateway::testbed::{Plan, traffic};
use gateway::text::{text, whole};
use gateway::trouble::Trouble;
use nix::unistd::{Gid, Uid};

/// Real packets through any queue discipline.
#[derive(Parser, Debug)]
#[command(version = env!("BLUEWATER_VERSION"), about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Task,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Task {
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
        /// Whose gateway it is, by name or number, if it is not yours: for root, and members of its --group.
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
pub(crate) enum Ctl {
    /// Its settings, counts and signals: a line of JSON, or at a terminal some for people.
    Show {
        /// Counts of all classes, not only of the ten that sent most.
        #[arg(long)]
        classes: bool,
    },
    /// Print the options that its links have now, as a file for `run --config`.
    Save,
    /// Have a new process of the installed program take over, while packets flow.
    Upgrade,
    /// Change its links. Nothing is lost: what is queued leaves first.
    Set(Box<Change>),
}

/// The command is at the near end of the link; it sees the far end, and nothing else, at the address
/// in BLUEWATER_FAR.
#[derive(Args, Debug)]
pub(crate) struct Shell {
    #[command(flatten)]
    pub(crate) link: LinkOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    /// Longest IP packet in bytes.
    #[arg(long, default_value_t = 1500, value_parser = whole(1280..=9000_u32))]
    pub(crate) mtu: u32,
    /// Let TCP at both ends ask for ECN (tcp_ecn=1); else it only answers.
    #[arg(long)]
    pub(crate) ecn: bool,
    /// Let the command reach the network of this machine through the link, by NAT at its far end: as
    /// root by nftables, else by pasta.
    #[arg(long)]
    pub(crate) uplink: bool,
    /// The name server that it asks then, an IPv4 address; again for more. This machine's if not given.
    #[arg(long, value_name = "ADDRESS", requires = "uplink", value_parser = shell::name_server)]
    pub(crate) dns: Vec<Ipv4Addr>,
    /// A line for sh that runs at the far end as long as the command does; again for more.
    #[arg(long = "far", value_name = "LINE")]
    pub(crate) far: Vec<String>,
    /// The command.
    #[arg(trailing_var_arg = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Frames go from one interface to the other unchanged, except for ECN marks. This machine's own network
/// stack gets none of them.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The interface that the way up comes from.
    #[arg(long)]
    pub(crate) lan: String,
    /// The interface that the way up goes to.
    #[arg(long)]
    pub(crate) wan: String,
    /// How frames come and go.
    #[arg(long, value_enum, default_value_t = Plane::Auto)]
    pub(crate) plane: Plane,
    /// Let this machine's own network stack have the frames that come in, too. It then answers and routes
    /// them beside the link.
    #[arg(long)]
    pub(crate) open_host: bool,
    /// Leave the other interface up when one loses its carrier; else it is taken down as long, so that
    /// who is there sees it.
    #[arg(long)]
    pub(crate) keep_carrier: bool,
    /// A group, by name or number, whose members may use `ctl`, too: `ctl --user root NAME show`.
    #[arg(long, value_parser = control::group)]
    pub(crate) group: Option<Gid>,
    /// What members of the group may do.
    #[arg(long, value_enum, default_value_t = May::All, requires = "group")]
    pub(crate) group_may: May,
    /// Take over from the gateway that has started this process.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
    /// Take options from a TOML file: `rate = "10mbit"`, and parameters in a table `[param]`. Those
    /// given here override it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) link: LinkOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// Connections of the kernel's own TCP.
#[derive(Args, Debug)]
pub(crate) struct Bulk {
    /// The sink's address.
    pub(crate) to: IpAddr,
    /// Its port.
    #[arg(long, default_value_t = traffic::PORT, value_parser = whole(0..=u16::MAX))]
    pub(crate) port: u16,
    /// How many connections.
    #[arg(long, default_value_t = 1, value_parser = whole(1..=u16::MAX))]
    pub(crate) flows: u16,
    /// How long.
    #[arg(long, default_value = "10s", value_parser = text::<Duration>)]
    pub(crate) time: Duration,
    /// Congestion control: reno, cubic, bbr. The kernel's default if not given.
    #[arg(long)]
    pub(crate) congestion: Option<String>,
}

/// A sender, the link and a receiver, each in a network namespace of its own.
#[derive(Args, Debug)]
pub(crate) struct Testbed {
    #[command(flatten)]
    pub(crate) link: LinkOptions,
    /// How many connections.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u16::MAX))]
    pub(crate) flows: u16,
    /// Congestion control: reno, cubic, bbr.
    #[arg(long, default_value = "reno")]
    pub(crate) congestion: String,
    /// Also send datagrams of 1500 B at this rate, which losses do not slow down; `5mbit,ect` for ECN-capable
    /// ones, ECT(0). Again for more flows.
    #[arg(long, value_name = "RATE[,ect]", value_parser = text::<Blast>)]
    pub(crate) udp: Vec<Blast>,
    /// Selective acknowledgements.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    pub(crate) sack: bool,
    /// TCP asks for ECN.
    #[arg(long)]
    pub(crate) ecn: bool,
    /// How long in all, once the connections are made.
    #[arg(long, default_value = "12s", value_parser = text::<Duration>)]
    pub(crate) duration: Duration,
    /// How much of that is not measured.
    #[arg(long, default_value = "2s", value_parser = text::<Duration>)]
    pub(crate) warmup: Duration,
    /// Time between samples of the queue; none if 0.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    pub(crate) interval: Duration,
}

impl Testbed {
    pub(crate) fn plan(&self) -> Result<Plan, Trouble> {
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
pub(crate) struct RunOptions {
    /// Name of this gateway for `ctl`; if not given, its process number or the next free one.
    #[arg(long, value_parser = control::name)]
    pub(crate) name: Option<String>,
    /// Serve OpenMetrics at this port of 127.0.0.1; 0 picks a free one and prints it.
    #[arg(long, value_name = "PORT", value_parser = control::metrics::port)]
    pub(crate) metrics: Option<u16>,
    /// Show a live page with sliders at this port of 127.0.0.1, or at another address; 0 picks a free port.
    /// Prints the page's address, which nobody else can guess.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = control::web::address)]
    pub(crate) web: Option<SocketAddr>,
    /// Whether forwarding goes before all other work of the machine (SCHED_FIFO).
    #[arg(long, value_enum, default_value_t = RealTime::Auto)]
    pub(crate) realtime: RealTime,
    /// Watch the clock instead of sleeping for this long before each departure: 50us.
    #[arg(long, default_value = "0s", value_parser = text::<Duration>)]
    pub(crate) spin: Duration,
    /// Write counts and events to a file, as JSON lines.
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Record the arrivals at the queues, for `replay`.
    #[arg(long)]
    pub(crate) record: Option<PathBuf>,
    /// Write packets and their fate, with the cause of each drop and mark as comment.
    #[arg(long)]
    pub(crate) pcapng: Option<PathBuf>,
    /// Write only one packet in this many to --pcapng.
    #[arg(long, default_value_t = 1, requires = "pcapng", value_parser = whole(1..=u32::MAX))]
    pub(crate) sample: u32,
    /// Time between lines of the log.
    #[arg(long, default_value = "1s", value_parser = text::<Duration>)]
    pub(crate) interval: Duration,
    /// No summary at the end.
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl RunOptions {
    /// `inputs` are the files that the command line names to be read.
    pub(crate) fn forwarding<'a>(
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
            group: None,
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
