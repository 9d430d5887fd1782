//! Graphs as GraphML (graphml.graphdrawing.org), as networkx, yEd and the Internet Topology Zoo write them.

use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node};
use scenario::arrivals::Cable;

/// The links of a graph; or what is wrong, with the line. Nodes are named by their label where each has one
/// of its own, else by their `id`. Rates and delays are those of the edges' data `rate` (or `LinkSpeedRaw`,
/// bit/s, of the Topology Zoo) and `delay`. A document with entities of its own is refused.
pub(crate) fn read(text: &str) -> Result<Vec<Cable>, String> {
    // The error has the line.
    let document = Document::parse(text).map_err(|e| e.to_string())?;
    let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row as usize;
    let root = document.root_element();
    let named = |node: Node<'_, '_>, name: &str| node.tag_name().name() == name;
    if !named(root, "graphml") {
        return Err(format!("line {}: the root is no <graphml>", line(root)));
    }
    let mut graphs = root.children().filter(|node| named(*node, "graph"));
    let (Some(graph), None) = (graphs.next(), graphs.next()) else {
        return Err(format!("line {}: one <graph> is wanted in <graphml>", line(root)));
    };
    let keys: HashMap<&str, &str> = root
        .children()
        .filter(|node| named(*node, "key"))
        .filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect();
    let data = |node: Node<'_, '_>, wanted: &str| -> Option<String> {
        let is = |data: &Node<'_, '_>| {
            let key = data.attribute("key").unwrap_or_default();
            named(*data, "data")
                && keys.get(key).is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        };
        let found = node.children().find(is)?;
        Some(found.text().unwrap_or_default().trim().to_string())
    };
    let mut nodes: HashMap<&str, String> = HashMap::new();
    for node in graph.children().filter(|node| named(*node, "node")) {
        let id = node
            .attribute("id")
            .ok_or_else(|| format!("line {}: <node> without id", line(node)))?;
        if nodes.insert(id, data(node, "label").unwrap_or_default()).is_some() {
            return Err(format!("line {}: a second <node> with the id {id}", line(node)));
        }
    }
    let labels: HashSet<&str> = nodes.values().map(String::as_str).collect();
    let by_label = labels.len() == nodes.len() && !labels.contains("");
    let directed = graph.attribute("edgedefault") == Some("directed");
    let mut cables = Vec::new();
    for edge in graph.children().filter(|node| named(*node, "edge")) {
        let end = |which: &str| {
            let id = edge.attribute(which).unwrap_or_default();
            let label = nodes.get(id).ok_or_else(|| {
                format!("line {}: {which} = \"{id}\": the id of a <node>", line(edge))
            })?;
            Ok::<_, String>(if by_label { label.clone() } else { id.to_string() })
        };
        let (from, to) = (end("source")?, end("target")?);
        let raw = || data(edge, "LinkSpeedRaw").map(|bits| format!("{bits}bit"));
        cables.push(Cable {
            line: line(edge),
            from,
            to,
            rate: data(edge, "rate").or_else(raw).unwrap_or_default(),
            delay: data(edge, "delay").unwrap_or_default(),
            one_way: edge.attribute("directed").map_or(directed, |text| text == "true"),
        });
    }
    Ok(cables)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="label" attr.type="string" for="node" id="d0" />
<key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1" />
<key attr.name="delay" attr.type="string" for="edge" id="d2" />
"#;

    fn graph(body: &str) -> Result<Vec<Cable>, String> {
        read(&format!("{HEAD}{body}</graphml>"))
    }

    const TWO: &str = r#"<node id="0"><data key="d0">Oslo</data></node>
<node id="1"><data key="d0">Bergen</data></node>"#;

    #[test]
    fn edges_have_the_labels_of_their_nodes_and_their_own_data() {
        let edges = r#"
<edge source="0" target="1"><data key="d1">1000000000</data><data key="d2"> 7ms </data></edge>
</graph>"#;
        let [cable] =
            &graph(&format!("<graph edgedefault=\"undirected\">{TWO}{edges}")).unwrap()[..]
        else {
            panic!("one edge")
        };
        let wanted = Cable {
            line: 8,
            from: "Oslo".into(),
            to: "Bergen".into(),
            rate: "1000000000bit".into(),
            delay: "7ms".into(),
            one_way: false,
        };
        assert_eq!(*cable, wanted);
        let alike = TWO.replace("Bergen", "Oslo");
        let ids = graph(&format!("<graph edgedefault=\"directed\">{alike}{edges}")).unwrap();
        assert_eq!((ids[0].from.as_str(), ids[0].to.as_str(), ids[0].one_way), ("0", "1", true));
    }

    #[test]
    fn what_is_wrong_with_a_graph_is_said_with_its_line() {
        for (body, said) in [
            ("", "line 2: one <graph> is wanted"),
            ("<graph/><graph/>", "line 2: one <graph> is wanted"),
            ("<graph><node/></graph>", "line 6: <node> without id"),
            (
                "<graph>\n<node id='a'/>\n<node id='a'/></graph>",
                "line 8: a second <node> with the id a",
            ),
            (
                "<graph>\n<node id='a'/><edge source='a' target='b'/></graph>",
                "line 7: target = \"b\": the id",
            ),
            ("<graph>\n<edge target='b'/></graph>", "line 7: source = \"\": the id"),
            ("<graph>\n<edge></graph>", "7:"),
        ] {
            let problem = graph(body).unwrap_err();
            assert!(problem.contains(said), "{said} in: {problem}");
        }
        assert!(read("<svg/>").unwrap_err().contains("line 1: the root is no <graphml>"));
        assert!(read("no graph").is_err());
    }

    /// Entities that stand for ever more of themselves, and a file that is to be included.
    #[test]
    fn entities_are_not_expanded() {
        for entity in [
            "<!ENTITY a \"aaaa\"> <!ENTITY b \"&a;&a;\">",
            "<!ENTITY b SYSTEM \"file:///etc/passwd\">",
        ] {
            let text =
                format!("<!DOCTYPE graphml [{entity}]><graphml><graph>&b;</graph></graphml>");
            let problem = read(&text).unwrap_err();
            assert!(problem.contains("DTD"), "{problem}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "<graph>".repeat(500_000);
        assert!(read(&format!("<graphml>{deep}")).is_err());
    }
}
