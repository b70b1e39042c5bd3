//! Numbers in the text format of Prometheus.

use std::fmt::{self, Write as _};

/// A text of metrics whose names begin with the same words.
#[derive(Debug)]
pub struct Exposition {
    prefix: &'static str,
    text: String,
}

impl Exposition {
    /// An empty text; names begin with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            text: String::new(),
        }
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// What a metric means; its values follow.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        self.line(format_args!("# HELP {prefix}{name} {help}"));
        self.line(format_args!("# TYPE {prefix}{name} {kind}"));
    }

    /// A metric with one value.
    pub fn value(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.head(name, kind, help);
        self.labelled(name, &[], value);
    }

    /// One value of a metric, with labels.
    pub fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        let prefix = self.prefix;
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
            .collect();
        if labels.is_empty() {
            self.line(format_args!("{prefix}{name} {value}"));
        } else {
            let labels = labels.join(",");
            self.line(format_args!("{prefix}{name}{{{labels}}} {value}"));
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        writeln!(self.text, "{line}").unwrap_or_default();
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_label_is_quoted() {
        let mut text = Exposition::new("selvedge_");
        text.head("x", "gauge", "An X.");
        text.labelled("x", &[("a", "b\"c\\d\ne"), ("f", "g")], 7);
        text.value("y", "counter", "A Y.", 0.5);
        assert_eq!(
            text.into_text(),
            "# HELP selvedge_x An X.\n# TYPE selvedge_x gauge\nselvedge_x{a=\"b\\\"c\\\\d\\ne\",f=\"g\"} 7\n\
             # HELP selvedge_y A Y.\n# TYPE selvedge_y counter\nselvedge_y 0.5\n"
        );
    }
}
