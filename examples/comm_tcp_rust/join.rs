//! How the ranks find one another. Each listens on a port that the kernel chooses, and publishes address, port and a
//! secret by the host's allgather, which is the only rendezvous. It connects to the lower ranks and accepts the higher
//! ones. Who connects says the listener's secret first, so a stranger is recognised.
use crate::ddprun_abi::*;
use crate::limit::*;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::io::AsRawFd;
use std::time::{Duration, Instant};

const SECRET: usize = 16;
const GREETING: usize = SECRET + 4; // the secret, and who connects
const PLACE: usize = 80; // the secret, and an address with its port as text, filled up with zeros

/// The function of the host: gathers the bytes of all ranks, in their order.
pub type Gather<'a> = &'a dyn Fn(&[u8], &mut [u8]) -> Result<(), Failure>;

fn failed(what: &str, error: std::io::Error) -> Failure {
    Failure::new(DDPRUN_INTERNAL, format!("{what}: {error}"))
}

/// Joins all ranks: the connection of each rank, `None` for this one.
pub fn join(
    rank: usize,
    size: usize,
    address: &str,
    limit: &Limit,
    gather: Gather,
) -> Result<Vec<Option<TcpStream>>, Failure> {
    let mut peers: Vec<Option<TcpStream>> = (0..size).map(|_| None).collect();
    if size == 1 {
        return Ok(peers);
    }
    let own = listen(address);
    // Zeros: this rank has failed. The others must not wait for it until the deadline.
    let place = own
        .as_ref()
        .map_or_else(|_| vec![0; PLACE], |(_, place)| place.clone());
    let mut places = vec![0; PLACE * size];
    gather(&place, &mut places)?;
    let (listener, _) = own?;
    for (peer, place) in places.chunks_exact(PLACE).enumerate() {
        if place.iter().all(|&byte| byte == 0) {
            let text = format!("rank {peer} cannot listen; its own error says why");
            return Err(Failure::new(DDPRUN_INTERNAL, text));
        }
    }
    for (peer, place) in places.chunks_exact(PLACE).enumerate().take(rank) {
        peers[peer] = Some(connect(rank, peer, place, limit)?);
    }
    accept_all(rank, &listener, &place[..SECRET], &mut peers, limit)?;
    for peer in peers.iter().flatten() {
        peer.set_nodelay(true)
            .map_err(|e| failed("TCP_NODELAY", e))?;
    }
    Ok(peers)
}

/// Listens at this address, and says what the others must know.
fn listen(address: &str) -> Result<(TcpListener, Vec<u8>), Failure> {
    let address: IpAddr = address.parse().map_err(|_| {
        Failure::new(
            DDPRUN_UNSUPPORTED,
            format!("this host has the address {address}: expected a number like 10.0.0.1"),
        )
    })?;
    let cannot_listen = |error| failed(&format!("cannot listen at {address}"), error);
    let listener = TcpListener::bind((address, 0)).map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    // Not a random number of the standard library: its seed may be older than the fork that made this rank.
    let mut secret = [0; SECRET];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut secret))
        .map_err(|e| failed("/dev/urandom", e))?;

    let mut place = secret.to_vec();
    place.extend(
        listener
            .local_addr()
            .map_err(cannot_listen)?
            .to_string()
            .bytes(),
    );
    place.resize(PLACE, 0);
    Ok((listener, place))
}

fn connect(rank: usize, peer: usize, place: &[u8], limit: &Limit) -> Result<TcpStream, Failure> {
    let (secret, address) = place.split_at(SECRET);
    let address = String::from_utf8_lossy(address);
    let address: SocketAddr = address.trim_end_matches('\0').parse().map_err(|_| {
        Failure::new(
            DDPRUN_INTERNAL,
            format!("rank {peer} has published no address: {address}"),
        )
    })?;
    let cannot = |e| {
        Failure::new(
            DDPRUN_PEER_LOST,
            format!("cannot connect to rank {peer} at {address}: {e}"),
        )
    };
    // The kernel of the peer answers, also while the peer is busy. So an attempt can be short, and an abort is noticed.
    let longest = Duration::from_millis(300);
    let mut made = loop {
        limit.check(|| format!("a connection to rank {peer}"))?;
        let left = limit.end.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.clamp(A_MOMENT, longest)) {
            Ok(made) => break made,
            Err(error) if error.kind() == ErrorKind::TimedOut => continue,
            Err(error) => return Err(cannot(error)),
        }
    };
    let greeting = [secret, &(rank as u32).to_le_bytes()].concat();
    made.write_all(&greeting).map_err(cannot)?; // it fits into the empty buffer of the socket
    made.set_nonblocking(true).map_err(cannot)?;
    Ok(made)
}

/// Somebody who has connected, and what they have said so far.
struct Guest {
    stream: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

impl Guest {
    /// Listens. False: the guest has left.
    fn listen(&mut self) -> bool {
        let mut more = [0; GREETING];
        let missing = GREETING - self.said.len();
        match self.stream.read(&mut more[..missing]) {
            Ok(0) => false,
            Ok(got) => {
                self.said.extend_from_slice(&more[..got]);
                true
            }
            Err(error) => is_for_later(&error),
        }
    }

    /// Which rank it is, if it knows the secret.
    fn rank(&self, secret: &[u8]) -> Option<usize> {
        let (known, rank) = self.said.split_at(SECRET);
        (known == secret).then(|| u32::from_le_bytes([rank[0], rank[1], rank[2], rank[3]]) as usize)
    }
}

/// Accepts the higher ranks. A stranger who says nothing keeps nobody waiting, and is sent away after five seconds.
fn accept_all(
    own: usize,
    listener: &TcpListener,
    secret: &[u8],
    peers: &mut [Option<TcpStream>],
    limit: &Limit,
) -> Result<(), Failure> {
    let patience = Duration::from_secs(5);
    let mut guests: Vec<Guest> = Vec::new();
    loop {
        let waiting_for: Vec<usize> = (own + 1..peers.len())
            .filter(|&rank| peers[rank].is_none())
            .collect();
        if waiting_for.is_empty() {
            return Ok(());
        }
        limit.check(|| format!("the connections of {}", ranks(&waiting_for)))?;
        let mut connections = vec![Waiting::new(listener.as_raw_fd(), true, false)];
        connections.extend(
            guests
                .iter()
                .map(|guest| Waiting::new(guest.stream.as_raw_fd(), true, false)),
        );
        wait_a_moment(&mut connections);
        match listener.accept() {
            Ok((stream, _)) => {
                stream
                    .set_nonblocking(true)
                    .map_err(|e| failed("cannot accept a connection", e))?;
                guests.push(Guest {
                    stream,
                    said: Vec::new(),
                    since: Instant::now(),
                });
            }
            Err(error) if is_for_later(&error) || error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(failed("cannot accept a connection", error)),
        }
        for mut guest in std::mem::take(&mut guests) {
            if !guest.listen() || guest.since.elapsed() > patience {
                continue; // dropped, so its connection is closed
            }
            if guest.said.len() < GREETING {
                guests.push(guest);
                continue;
            }
            match guest.rank(secret) {
                Some(rank) if waiting_for.contains(&rank) => peers[rank] = Some(guest.stream),
                _ => {} // a stranger
            }
        }
    }
}

/// "rank 1, rank 3"
pub fn ranks(numbers: &[usize]) -> String {
    numbers
        .iter()
        .map(|rank| format!("rank {rank}"))
        .collect::<Vec<_>>()
        .join(", ")
}
