//! The ways of flows through the network.

use std::collections::HashMap;
use std::sync::Arc;

use aqm::{FlowHash, FlowKey};
use scenario::Scenario;
use scenario::error::Complaint;
use scenario::network::{Ecmp, Topology};
use scenario::routes::{Route, Routes};
use scenario::switch::Shared;

use super::{Stream, highest_rates, stream};
use crate::network::{Draw, END, Stage};

/// Which of the ends of a flow sends.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Out = 0,
    Back = 1,
}

/// The table of paths, each path once.
pub(super) struct Paths<'a> {
    topology: &'a Topology,
    routes: Routes<'a>,
    seed: u64,
    /// By which switches choose.
    hash: FlowHash,
    /// The number of each link's wire, if that impairs packets.
    wires: Vec<Option<u32>>,
    /// How many links and wires there are.
    elements: u32,
    /// The highest rate of each link, bit/s.
    rates: Vec<u64>,
    pub(super) table: Vec<u32>,
    /// Where each path is in the table, and the highest rate that all of it carries, bit/s.
    known: HashMap<Route, (u32, u64)>,
    /// The one path between two nodes, where all flows take it.
    between: HashMap<[usize; 2], (u32, u64)>,
    /// The paths between two nodes, where packets draw.
    drawn: HashMap<[usize; 2], (Shares, u64)>,
    /// What the entries behind all links and wires stand for.
    pub(super) stages: Vec<Stage>,
    /// The entry before each link whose queue shares a buffer.
    gates: HashMap<u32, u32>,
}

/// Up to which number, in 0 … 1, each path is drawn, and where it is in the table.
type Shares = Arc<[(f64, u32)]>;

/// The most paths between two nodes among which packets draw; a fat-tree of 32 ports has as many.
const MOST_PATHS: usize = 256;

impl<'a> Paths<'a> {
    pub(super) fn new(
        scenario: &Scenario,
        topology: &'a Topology,
        wires: Vec<Option<u32>>,
        shared: &[Shared],
    ) -> Self {
        let seed = scenario.seed;
        let elements = (wires.len() + wires.iter().flatten().count()) as u32;
        let (mut stages, mut gates) = (Vec::new(), HashMap::new());
        for (pool, shared) in shared.iter().enumerate() {
            for &link in &shared.links {
                gates.insert(link as u32, elements + stages.len() as u32);
                stages.push(Stage::Admit(link, pool));
            }
        }
        Self {
            topology,
            routes: Routes::new(topology),
            seed,
            hash: FlowHash::new(&mut stream(seed, Stream::Route, 0)),
            elements,
            wires,
            rates: highest_rates(scenario, topology),
            table: Vec::new(),
            known: HashMap::new(),
            between: HashMap::new(),
            drawn: HashMap::new(),
            stages,
            gates,
        }
    }

    /// Where the path of a flow is in the table, and the highest rate that all of it carries, bit/s.
    pub(super) fn of(
        &mut self,
        ends: [usize; 2],
        flow: u32,
        way: Way,
    ) -> Result<(u32, u64), Complaint> {
        match self.topology.ecmp {
            Ecmp::None => {
                if let Some(&known) = self.between.get(&ends) {
                    return Ok(known);
                }
                let path = self.fixed(ends, |_, _| 0)?;
                self.between.insert(ends, path);
                Ok(path)
            }
            Ecmp::Flow => {
                let (hash, flow) = (self.hash.clone(), u64::from(flow) << 1 | way as u64);
                // Each switch has a hash of its own.
                let choose =
                    |node: usize, n: usize| hash.bin(FlowKey((node as u64) << 33 | flow), n as u32);
                self.fixed(ends, choose)
            }
            Ecmp::Packet => self.drawn(ends, flow, way),
        }
    }

    fn fixed(
        &mut self,
        [from, to]: [usize; 2],
        choose: impl FnMut(usize, usize) -> usize,
    ) -> Result<(u32, u64), Complaint> {
        let route = self.routes.route(from, to, choose).ok_or_else(no_route)?;
        Ok(self.path(route))
    }

    /// The place of a path among which the packets of a flow draw each its own.
    fn drawn(&mut self, ends: [usize; 2], flow: u32, way: Way) -> Result<(u32, u64), Complaint> {
        let (paths, rate) = match self.drawn.get(&ends) {
            Some(known) => known.clone(),
            None => {
                let most = format!("at most {MOST_PATHS} equally short routes between two nodes");
                let refused =
                    || Complaint::new("network.ecmp", most).hint("`flow` has no such bound");
                let all = self.routes.all(ends[0], ends[1], MOST_PATHS).ok_or_else(refused)?;
                let (mut upto, mut highest) = (0.0, 0);
                let place = |(route, share): (Route, f64)| {
                    let (at, rate) = self.path(route);
                    (upto, highest) = (upto + share, rate.max(highest));
                    (upto, at)
                };
                let paths: Shares = all.into_iter().map(place).collect();
                self.drawn.insert(ends, (paths.clone(), highest));
                (paths, highest)
            }
        };
        let at = self.table.len() as u32;
        self.table.extend([self.elements + self.stages.len() as u32, END]);
        let number = ((1 + flow as usize) << 1) | way as usize;
        let draw = Draw::new(paths, stream(self.seed, Stream::Route, number));
        self.stages.push(Stage::Draw(draw));
        Ok((at, rate))
    }

    /// The place of a path in the table, once it is there, and its highest rate.
    fn path(&mut self, route: Route) -> (u32, u64) {
        if let Some(&known) = self.known.get(&route) {
            return known;
        }
        let (at, mut rate) = (self.table.len() as u32, u64::MAX);
        for &link in &route {
            rate = rate.min(self.rates[link as usize]);
            self.table.extend(self.gates.get(&link));
            self.table.push(link);
            self.table.extend(self.wires[link as usize]);
        }
        self.table.push(END);
        self.known.insert(route, (at, rate));
        (at, rate)
    }
}

fn no_route() -> Complaint {
    Complaint::wrong("traffic", "there is no route between its nodes")
}
