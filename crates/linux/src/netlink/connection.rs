//! A netlink socket in one namespace, and the two ways to use it: a change that is acknowledged, and a dump.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use futures::{Stream, StreamExt};
use netlink_packet_route::RouteNetlinkMessage;
use rtnetlink::{
    packet_core::{
        NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
    },
    proto::{self, ConnectionHandle},
    sys::{AsyncSocket, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE},
};

use super::{Domain, message::Message};

/// How often a dump is asked for again when the tables change while they are read.
const DUMP_ATTEMPTS: usize = 5;

/// Why a request to the kernel failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It said no.
    #[error("the kernel refused")]
    Refused(#[source] io::Error),
    /// The socket is gone.
    #[error("the netlink socket closed")]
    Closed,
    /// There are more objects than the caller can use.
    #[error("there are more than {most}")]
    TooMany {
        /// How many it can use.
        most: usize,
    },
    /// The tables never held still.
    #[error("the tables changed while they were read, {DUMP_ATTEMPTS} times over")]
    Unsteady,
}

impl RequestError {
    /// The error number of a refusal.
    pub(super) fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused(error) => error.raw_os_error(),
            Self::Closed | Self::TooMany { .. } | Self::Unsteady => None,
        }
    }
}

/// A netlink socket. The task that serves it ends with this value.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) domain: Domain,
    socket: Mutex<Socket>,
}

#[derive(Debug)]
struct Socket {
    handle: ConnectionHandle<Message>,
    task: tokio::task::JoinHandle<()>,
}

impl Socket {
    /// A socket in the namespace of the calling thread.
    ///
    /// With strict checking on, the kernel filters dumps by what the request says instead of sending everything: a
    /// router's tables may hold a million routes that are not ours.
    fn open() -> io::Result<Self> {
        let (mut connection, handle, _unsolicited) =
            proto::new_connection_with_socket::<Message, TokioSocket>(NETLINK_ROUTE)?;
        connection
            .socket_mut()
            .socket_mut()
            .set_netlink_get_strict_chk(true)?;
        // Without these, a closed socket could not be distinguished from success.
        connection.set_forward_ack(true);
        connection.set_forward_done(true);
        let task = tokio::spawn(connection);
        Ok(Self { handle, task })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// A connection in the namespace of the calling thread.
    pub(super) fn open(domain: Domain) -> io::Result<Self> {
        let socket = Mutex::new(Socket::open()?);
        Ok(Self { domain, socket })
    }

    fn send(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<impl Stream<Item = NetlinkMessage<Message>> + use<>, RequestError> {
        let mut request = NetlinkMessage::from(Message(message));
        request.header.flags = flags;
        let kernel = SocketAddr::new(0, 0);
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        // An overrun ends the task. A connection to the router is made anew for each use; the one to the host has to last.
        if socket.task.is_finished() && self.domain == Domain::Host {
            *socket = Socket::open().map_err(|_gone| RequestError::Closed)?;
        }
        let requested = socket.handle.request(request, kernel);
        requested.map_err(|_closed| RequestError::Closed)
    }

    /// Asks for a change and waits until the kernel has made or refused it.
    pub(super) async fn change(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), RequestError> {
        let mut response = self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        while let Some(message) = response.next().await {
            if let NetlinkPayload::Error(error) = message.payload {
                return match error.code {
                    None => Ok(()),
                    Some(_) => Err(RequestError::Refused(error.to_io())),
                };
            }
        }
        Err(RequestError::Closed)
    }

    /// Asks for one object.
    pub(super) async fn get(
        &self,
        message: RouteNetlinkMessage,
    ) -> Result<RouteNetlinkMessage, RequestError> {
        let mut response = self.send(message, NLM_F_REQUEST)?;
        match response.next().await.map(|message| message.payload) {
            Some(NetlinkPayload::InnerMessage(Message(message))) => Ok(message),
            Some(NetlinkPayload::Error(error)) => Err(RequestError::Refused(error.to_io())),
            _ => Err(RequestError::Closed),
        }
    }

    /// Asks for all objects that match, again if they change while they are read.
    pub(super) async fn dump(
        &self,
        message: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, RequestError> {
        self.dump_at_most(message, usize::MAX).await
    }

    /// The same, of no more than so many.
    pub(super) async fn dump_at_most(
        &self,
        message: RouteNetlinkMessage,
        most: usize,
    ) -> Result<Vec<RouteNetlinkMessage>, RequestError> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut objects = Vec::new();
            let take = |object| {
                if objects.len() == most {
                    return Err(RequestError::TooMany { most });
                }
                objects.push(object);
                Ok(())
            };
            if self.try_each(message.clone(), take).await? {
                return Ok(objects);
            }
        }
        Err(RequestError::Unsteady)
    }

    /// Shows every object, however many there are; some more than once if they change meanwhile.
    pub(super) async fn dump_each(
        &self,
        message: RouteNetlinkMessage,
        mut show: impl FnMut(RouteNetlinkMessage),
    ) -> Result<(), RequestError> {
        for _ in 0..DUMP_ATTEMPTS {
            let show = |object| {
                show(object);
                Ok(())
            };
            if self.try_each(message.clone(), show).await? {
                return Ok(());
            }
        }
        Err(RequestError::Unsteady)
    }

    /// Whether the objects did not change meanwhile.
    async fn try_each(
        &self,
        message: RouteNetlinkMessage,
        mut take: impl FnMut(RouteNetlinkMessage) -> Result<(), RequestError>,
    ) -> Result<bool, RequestError> {
        let mut response = self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut steady = true;
        while let Some(message) = response.next().await {
            steady &= message.header.flags & NLM_F_DUMP_INTR == 0;
            match message.payload {
                NetlinkPayload::InnerMessage(Message(object)) => take(object)?,
                NetlinkPayload::Error(error) => {
                    return Err(RequestError::Refused(error.to_io()));
                }
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(RequestError::Refused(io::Error::from_raw_os_error(
                        -done.code,
                    )));
                }
                NetlinkPayload::Done(_) => return Ok(steady),
                _ => {}
            }
        }
        Err(RequestError::Closed)
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    #[tokio::test]
    async fn a_socket_that_is_gone_is_opened_again() {
        let connection = Connection::open(Domain::Host).unwrap();
        let links = || connection.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()));
        let before = links().await.unwrap();
        connection.socket.lock().unwrap().task.abort();
        while !connection.socket.lock().unwrap().task.is_finished() {
            tokio::task::yield_now().await;
        }
        assert_eq!(links().await.unwrap().len(), before.len());
    }
}
