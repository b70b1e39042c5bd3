//! What a series of pings came to. Pure.

/// How many pings were sent, and how many came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ping {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
}

impl Ping {
    /// Reads the summary line of `ping`.
    pub(crate) fn parse(output: &str) -> Option<Self> {
        let summary = output
            .lines()
            .find(|line| line.contains("packets transmitted"))?;
        let mut numbers = summary
            .split(", ")
            .filter_map(|part| part.split(' ').next()?.parse().ok());
        Some(Self {
            sent: numbers.next()?,
            received: numbers.next()?,
        })
    }

    /// Whether every request was answered.
    pub fn whole(self) -> bool {
        self.sent > 0 && self.sent == self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\n--- 192.0.2.1 ping statistics ---\n3 packets transmitted, 2 received, 33.3333% packet loss, time 403ms\n";
        assert_eq!(
            Ping::parse(text),
            Some(Ping {
                sent: 3,
                received: 2
            })
        );
        assert_eq!(Ping::parse("connect: Network is unreachable"), None);
    }

    #[test]
    fn errors_in_between_do_not_count() {
        let text = "4 packets transmitted, 0 received, +4 errors, 100% packet loss, time 600ms";
        assert_eq!(
            Ping::parse(text),
            Some(Ping {
                sent: 4,
                received: 0
            })
        );
    }
}
