//! The log.

use super::Outcome;
use crate::config::{Debug, FrrConfig, LogLevel};

pub(super) fn root(config: &mut FrrConfig, negated: bool, words: &[&str]) -> Option<Outcome> {
    let log = &mut config.log;
    match (negated, words) {
        (true, ["log", "stdout", ..]) => log.stdout = None,
        (false, ["log", "stdout"]) => log.stdout = Some(LogLevel::Debugging),
        (false, ["log", "stdout", word]) => {
            let level = LogLevel::ALL.iter().find(|level| level.as_str() == *word)?;
            log.stdout = Some(*level);
        }
        (_, ["debug", rest @ ..]) => {
            let text = rest.join(" ");
            let directions = [Debug::BgpUpdatesIn, Debug::BgpUpdatesOut];
            let topics: Vec<Debug> = if text == "bgp updates" {
                directions.to_vec()
            } else {
                vec![*Debug::ALL.iter().find(|topic| topic.as_str() == text)?]
            };
            for topic in topics {
                if negated {
                    log.debug.remove(&topic);
                } else {
                    log.debug.insert(topic);
                }
            }
        }
        _ => return None,
    }
    Some(Outcome::Done)
}
