//! The shortest routes of a network, found from their ends on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::network::{Routing, Topology};

/// How far it is to the end of a route: delay in ns, where that counts, and hops.
type Cost = (u64, u32);

/// A route by the numbers of its links.
pub type Route = Vec<u32>;

/// The shortest routes of a network.
pub struct Routes<'a> {
    topology: &'a Topology,
    searches: HashMap<usize, Search>,
}

/// Dijkstra's search from the end of routes against the links, as far as it got.
#[derive(Default)]
struct Search {
    settled: HashMap<usize, Cost>,
    /// The links that lead on from nodes where a route came by: a switch may have thousands.
    onward: HashMap<usize, Vec<u32>>,
    open: BinaryHeap<Reverse<(Cost, usize)>>,
}

impl<'a> Routes<'a> {
    /// Those of `topology`; none is looked for yet.
    pub fn new(topology: &'a Topology) -> Self {
        Self { topology, searches: HashMap::new() }
    }

    /// A shortest route from one node to another. Where several links lead on, `choose` picks one: it gets
    /// the node and their number, and returns an index; they are in the order of the links.
    pub fn route(
        &mut self,
        from: usize,
        to: usize,
        mut choose: impl FnMut(usize, usize) -> usize,
    ) -> Option<Route> {
        let ends = self.ends(from, to)?;
        let links = &self.topology.links;
        let mut route = ends.first;
        let mut node = ends.from;
        while node != ends.to {
            let onward = self.onward(node, ends.to);
            let link = match *onward {
                [only] => only,
                _ => *onward.get(choose(node, onward.len()))?,
            };
            route.push(link);
            node = links[link as usize].to;
        }
        route.extend(ends.last);
        Some(route)
    }

    /// All shortest routes from one node to another, each with its share of packets that draw a link at each
    /// node; `None` without one, and if there are more than `most`.
    pub fn all(&mut self, from: usize, to: usize, most: usize) -> Option<Vec<(Route, f64)>> {
        let ends = self.ends(from, to)?;
        let links = &self.topology.links;
        // Equally short routes have as many hops.
        let mut routes = vec![(ends.first, ends.from, 1.0)];
        while routes.first().is_some_and(|(_, node, _)| *node != ends.to) {
            let mut longer = Vec::new();
            for (route, node, share) in routes {
                let onward = self.onward(node, ends.to);
                for &link in onward {
                    let mut route = route.clone();
                    route.push(link);
                    let node = links[link as usize].to;
                    longer.push((route, node, share / onward.len() as f64));
                }
                if longer.len() > most {
                    return None;
                }
            }
            routes = longer;
        }
        let whole = |(mut route, _, share): (Route, usize, f64)| {
            route.extend(ends.last);
            (route, share)
        };
        Some(routes.into_iter().map(whole).collect())
    }

    /// What all routes from one node to another have in common, if there are any: hosts have one link, so
    /// that a search serves all hosts of a switch.
    fn ends(&mut self, from: usize, to: usize) -> Option<Ends> {
        let Topology { links, out, into, .. } = self.topology;
        let mut ends = Ends { first: Vec::new(), from, to, last: None };
        if from != to
            && let [link] = out[from][..]
        {
            ends.first.push(link as u32);
            ends.from = links[link].to;
        }
        if ends.from != to
            && let [link] = into[to][..]
        {
            ends.last = Some(link as u32);
            ends.to = links[link].from;
        }
        self.settle(ends.from, ends.to).then_some(ends)
    }

    /// The links out of `node` that begin a shortest route to `to`; both are settled.
    fn onward(&mut self, node: usize, to: usize) -> &[u32] {
        let topology = self.topology;
        let Some(Search { settled, onward, .. }) = self.searches.get_mut(&to) else { return &[] };
        onward.entry(node).or_insert_with(|| {
            let leads = |&link: &usize| {
                let after = settled.get(&topology.links[link].to);
                after.map(|&after| longer(topology, after, link)).as_ref() == settled.get(&node)
            };
            let out = topology.out[node].iter().copied();
            out.filter(leads).map(|link| link as u32).collect()
        })
    }

    /// Goes on with the search from `to` until `from` is settled, and with it all that is nearer. Returns
    /// whether there is a route.
    fn settle(&mut self, from: usize, to: usize) -> bool {
        let mut search = self.searches.remove(&to).unwrap_or_else(|| Search {
            open: BinaryHeap::from([Reverse(((0, 0), to))]),
            ..Search::default()
        });
        while !search.settled.contains_key(&from)
            && let Some(Reverse((cost, node))) = search.open.pop()
        {
            if search.settled.contains_key(&node) {
                continue;
            }
            search.settled.insert(node, cost);
            for &link in &self.topology.into[node] {
                let before = self.topology.links[link].from;
                if self.leads_on(before) {
                    search.open.push(Reverse((longer(self.topology, cost, link), before)));
                }
            }
        }
        let found = search.settled.contains_key(&from);
        self.searches.insert(to, search);
        found
    }

    /// Whether a route can come through a node: not where the only way out is that in.
    fn leads_on(&self, node: usize) -> bool {
        let Topology { links, out, into, .. } = self.topology;
        !matches!((&out[node][..], &into[node][..]),
            (&[there], &[back]) if links[there].to == links[back].from)
    }
}

/// The cost of a route that begins with `link` and goes on at `cost`.
fn longer(topology: &Topology, cost: Cost, link: usize) -> Cost {
    let delay = match topology.routing {
        Routing::Hops => 0,
        Routing::Delay => topology.links[link].delay.as_nanos(),
    };
    (cost.0 + delay, cost.1 + 1)
}

/// The first and the last link of all routes between two nodes, and what is between them.
struct Ends {
    first: Route,
    from: usize,
    to: usize,
    last: Option<u32>,
}
