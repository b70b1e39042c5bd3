//! What a configuration of FRR means, whatever its order and its numbers: lines by the blocks around them, lists by their rules, route
//! maps by their entries.

use std::collections::{BTreeMap, BTreeSet};

/// The meaning of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Lines by the lines that lead into their block.
    pub(crate) lines: BTreeMap<Vec<String>, BTreeSet<String>>,
    /// Rules of prefix lists and community lists by family and name.
    pub(crate) lists: BTreeMap<String, BTreeSet<String>>,
    /// Entries of route maps by name. Those that only add something have no order among themselves and come first.
    pub(crate) maps: BTreeMap<String, Entries>,
}

/// Entries of a route map.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    /// Entries after which the next one is asked.
    pub(crate) adding: BTreeSet<BTreeSet<String>>,
    /// Entries that decide, in their order.
    pub(crate) deciding: Vec<BTreeSet<String>>,
}

/// Lines that FRR writes by itself.
const AMBIENT: [&str; 11] = [
    "Building configuration...",
    "Current configuration:",
    "frr version",
    "frr defaults",
    "hostname",
    "service",
    "no service",
    "ip forwarding",
    "no ip forwarding",
    "ipv6 forwarding",
    "no ipv6 forwarding",
];

impl Meaning {
    pub(crate) fn of(text: &str) -> Self {
        let mut meaning = Self::default();
        let mut path: Vec<String> = Vec::new();
        let mut entries: BTreeMap<String, BTreeMap<u32, BTreeSet<String>>> = BTreeMap::new();
        let mut entry: Option<(String, u32)> = None;
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [comment, ..] if comment.starts_with('!') => {}
                ["end"] => path.clear(),
                [exit] if exit.starts_with("exit") => {
                    if entry.take().is_none() {
                        path.pop();
                    }
                }
                ["route-map", name, action, number] => {
                    let number = number.parse().expect("a line of FRR");
                    let lines = entries.entry((*name).to_owned()).or_default();
                    let lines = lines.entry(number).or_default();
                    lines.insert((*action).to_owned());
                    entry = Some(((*name).to_owned(), number));
                }
                [
                    ip @ ("ip" | "ipv6"),
                    "prefix-list",
                    name,
                    "seq",
                    _,
                    rule @ ..,
                ] => {
                    let rules = meaning.lists.entry(format!("{ip} {name}")).or_default();
                    rules.insert(rule_of(rule));
                }
                _ if AMBIENT.iter().any(|known| line.starts_with(known)) => {}
                _ => match &entry {
                    Some((name, number)) => {
                        let lines = entries
                            .get_mut(name)
                            .expect("a line of FRR")
                            .get_mut(number)
                            .expect("a line of FRR");
                        lines.insert(words.join(" "));
                    }
                    None => meaning.line(&mut path, &words),
                },
            }
        }
        for (name, entries) in entries {
            let (adding, deciding) = entries
                .into_values()
                .partition::<Vec<_>, _>(|lines| lines.contains("on-match next"));
            let adding = adding.into_iter().collect();
            meaning.maps.insert(name, Entries { adding, deciding });
        }
        meaning.without_derived_targets();
        meaning
    }

    fn line(&mut self, path: &mut Vec<String>, words: &[&str]) {
        if let ["router" | "vrf" | "bfd", ..] = words {
            path.clear();
        }
        let line = match words {
            ["neighbor", peer, "ebgp-multihop", "255"] => format!("neighbor {peer} ebgp-multihop"),
            ["neighbor", peer, "timers", keepalive, hold] if *keepalive != "connect" => {
                let hold: u16 = hold.parse().expect("a line of FRR");
                let keepalive = keepalive
                    .parse::<u16>()
                    .expect("a line of FRR")
                    .min(hold / 3);
                format!("neighbor {peer} timers {keepalive} {hold}")
            }
            _ => words.join(" "),
        };
        let opens = matches!(
            words,
            ["router" | "address-family", ..] | ["vrf" | "profile", _] | ["bfd"]
        ) || matches!(words, ["vni", _] if path.len() == 2);
        if opens {
            path.push(line);
            self.lines.entry(path.clone()).or_default();
            return;
        }
        let here = self.lines.entry(path.clone()).or_default();
        if line == "debug bgp updates" {
            here.extend(["in", "out"].map(|way| format!("{line} {way}")));
        } else {
            here.insert(line);
        }
    }

    /// A VNI with nothing but the route target that FRR derives is one about which nothing is said; some versions print it.
    fn without_derived_targets(&mut self) {
        for (path, lines) in &mut self.lines {
            let [router, _, vni] = path.as_slice() else {
                continue;
            };
            let asn = router.split_whitespace().nth(2).expect("a line of FRR");
            let number = vni.split_whitespace().nth(1).expect("a line of FRR");
            for way in ["import", "export"] {
                let word = format!("route-target {way} ");
                let derived = format!("{word}{asn}:{number}");
                let mut targets = lines.iter().filter(|line| line.starts_with(&word));
                if targets.next() == Some(&derived) && targets.next().is_none() {
                    lines.remove(&derived);
                }
            }
        }
        // A family or a VNI of which nothing is said.
        self.lines
            .retain(|path, lines| path.len() < 2 || !lines.is_empty() || path[0] == "bfd");
    }
}

fn rule_of(words: &[&str]) -> String {
    let value = |word: &str| {
        let at = words.iter().position(|it| *it == word)?;
        words.get(at + 1).map(|it| (*it).to_owned())
    };
    let (action, prefix) = (words[0], words[1]);
    let longest = if prefix.contains(':') { "128" } else { "32" };
    let (ge, le) = (value("ge"), value("le"));
    let mut rule = format!("{action} {prefix}");
    if let Some(ge) = &ge {
        rule.extend([" ge ", ge.as_str()]);
    }
    if let Some(le) = le.filter(|le| ge.is_none() || le != longest) {
        rule.extend([" le ", le.as_str()]);
    }
    rule
}
