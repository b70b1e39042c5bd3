//! The language of the guest's service, which `serve.pl` describes.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::host::Record;

/// What the service says.
enum Frame {
    Started(u32),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Ended(i32),
}

/// The service's side of a conversation about one command.
#[derive(Debug)]
pub(super) struct Answers(BufReader<TcpStream>);

/// Asks the service for a command, and waits until that has started: its answers, and its process id.
pub(super) fn ask(
    mut stream: &TcpStream,
    argv: &[&str],
    stdin: &str,
    patience: Duration,
) -> io::Result<(Answers, u32)> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    let words = argv.join("\0");
    stream.write_all(format!("{} {}\n{words}{stdin}", words.len(), stdin.len()).as_bytes())?;
    let mut answers = Answers(BufReader::new(stream.try_clone()?));
    let first = answers.next()?;
    stream.set_read_timeout(None)?;
    match first {
        Some(Frame::Started(pid)) => Ok((answers, pid)),
        _ => Err(io::Error::other(
            "the guest did not say that the command has started",
        )),
    }
}

impl Answers {
    /// Writes down what the service says until the command has ended, or the guest is gone.
    pub(super) fn record(mut self, record: &Record) {
        loop {
            match self.next() {
                Ok(Some(Frame::Stdout(bytes))) => record.stdout(&bytes),
                Ok(Some(Frame::Stderr(bytes))) => record.stderr(&bytes),
                Ok(Some(Frame::Ended(status))) => return record.end(Some(status)),
                Ok(Some(Frame::Started(_)) | None) | Err(_) => return record.end(None),
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut head = String::new();
        if self.0.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let garbled = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("garbled answer {head:?}"),
            )
        };
        let (kind, number) = head.trim_end().split_once(' ').ok_or_else(garbled)?;
        let number: u32 = number.parse().map_err(|_not_a_number| garbled())?;
        let mut body = || {
            let mut bytes = vec![0; usize::try_from(number).unwrap_or_default()];
            self.0.read_exact(&mut bytes).map(|()| bytes)
        };
        Ok(Some(match kind {
            "P" => Frame::Started(number),
            "O" => Frame::Stdout(body()?),
            "E" => Frame::Stderr(body()?),
            "X" => Frame::Ended(i32::try_from(number).unwrap_or(i32::MAX)),
            _ => return Err(garbled()),
        }))
    }
}
