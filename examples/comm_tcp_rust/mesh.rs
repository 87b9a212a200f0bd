//! The collectives. Each rank has a TCP connection to every other rank. An allreduce cuts the data into as many blocks
//! as there are ranks. Each rank receives its block from all others, reduces it, and sends the result to all others. So
//! all ranks get the same bits, and the order of the additions depends only on the ranks.
use crate::ddprun_abi::*;
use crate::join::ranks;
use crate::limit::*;
use crate::reduce::{combine, divide, width};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::io::AsRawFd;

pub struct Mesh {
    rank: usize,
    peers: Vec<Option<TcpStream>>, // the connection of each rank; none to itself
    piece: usize,                  // bytes that an allreduce handles at once
    scratch: Vec<u8>,              // what the others send of this rank's block
}

/// What a rank sends to a peer and receives from it, at the same time.
struct Transfer<'a> {
    peer: usize,
    send: &'a [u8],
    recv: &'a mut [u8],
}

impl Mesh {
    pub fn new(rank: usize, peers: Vec<Option<TcpStream>>, piece: usize) -> Result<Mesh, Failure> {
        let mut scratch = Vec::new();
        // A block has at most one element more than its share.
        let bytes = piece + 8 * peers.len();
        scratch
            .try_reserve_exact(bytes)
            .map_err(|e| Failure::new(DDPRUN_NO_MEMORY, e.to_string()))?;
        scratch.resize(bytes, 0);
        Ok(Mesh {
            rank,
            peers,
            piece,
            scratch,
        })
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// The peers must not wait for a rank that has given up.
    pub fn close(&self) {
        for peer in self.peers.iter().flatten() {
            let _ = peer.shutdown(Shutdown::Both); // it may be closed already
        }
    }

    pub fn allreduce(
        &mut self,
        dtype: i32,
        op: i32,
        data: &mut [u8],
        limit: &Limit,
    ) -> Result<(), Failure> {
        let element = width(dtype);
        for piece in data.chunks_mut(self.piece / element * element) {
            let sizes = block_sizes(piece.len() / element, self.peers.len(), element);
            let mut blocks = split(piece, &sizes);
            self.reduce_own(dtype, op, &mut blocks, limit)?;
            self.gather(blocks, limit)?;
        }
        Ok(())
    }

    pub fn broadcast(&self, root: usize, data: &mut [u8], limit: &Limit) -> Result<(), Failure> {
        if self.rank != root {
            return self.exchange(
                vec![Transfer {
                    peer: root,
                    send: &[],
                    recv: data,
                }],
                limit,
            );
        }
        let data = &*data;
        self.exchange(
            self.others()
                .map(|peer| Transfer {
                    peer,
                    send: data,
                    recv: &mut [],
                })
                .collect(),
            limit,
        )
    }

    /// `data` has a block of each rank; this rank's is in place already.
    pub fn allgather(&self, data: &mut [u8], limit: &Limit) -> Result<(), Failure> {
        let bytes = data.len() / self.peers.len();
        self.gather(split(data, &vec![bytes; self.peers.len()]), limit)
    }

    pub fn barrier(&self, limit: &Limit) -> Result<(), Failure> {
        self.allgather(&mut vec![0; self.peers.len()], limit)
    }

    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.peers.len()).filter(move |&peer| peer != self.rank)
    }

    fn stream(&self, peer: usize) -> &TcpStream {
        self.peers[peer]
            .as_ref()
            .expect("a connection to each other rank")
    }

    /// This rank's block becomes the reduction of the blocks of all ranks.
    fn reduce_own(
        &mut self,
        dtype: i32,
        op: i32,
        blocks: &mut [&mut [u8]],
        limit: &Limit,
    ) -> Result<(), Failure> {
        let mut scratch = std::mem::take(&mut self.scratch); // so that `self` is not borrowed twice
        let bytes = blocks[self.rank].len();
        let parts = split(&mut scratch, &vec![bytes; self.peers.len() - 1]);
        let transfers = self.others().zip(parts).map(|(peer, recv)| Transfer {
            peer,
            send: blocks[peer],
            recv,
        });
        let result = self.exchange(transfers.collect(), limit);
        if result.is_ok() && bytes > 0 {
            let own = &mut *blocks[self.rank];
            scratch
                .chunks_exact(bytes)
                .take(self.peers.len() - 1)
                .for_each(|part| combine(dtype, op, own, part));
            if op == DDPRUN_AVG {
                divide(dtype, own, self.peers.len());
            }
        }
        self.scratch = scratch;
        result
    }

    /// Sends this rank's block to all others, and receives theirs.
    fn gather(&self, mut blocks: Vec<&mut [u8]>, limit: &Limit) -> Result<(), Failure> {
        let own = &*blocks.remove(self.rank);
        let transfers = self.others().zip(blocks).map(|(peer, recv)| Transfer {
            peer,
            send: own,
            recv,
        });
        self.exchange(transfers.collect(), limit)
    }

    /// Carries out the transfers, all at the same time.
    fn exchange(&self, mut transfers: Vec<Transfer>, limit: &Limit) -> Result<(), Failure> {
        loop {
            for transfer in &mut transfers {
                transfer.advance(self.stream(transfer.peer))?;
            }
            transfers.retain(|transfer| !transfer.send.is_empty() || !transfer.recv.is_empty());
            if transfers.is_empty() {
                return Ok(());
            }
            limit.check(|| {
                ranks(
                    &transfers
                        .iter()
                        .map(|transfer| transfer.peer)
                        .collect::<Vec<_>>(),
                )
            })?;
            let waiting = |transfer: &Transfer| {
                let descriptor = self.stream(transfer.peer).as_raw_fd();
                Waiting::new(
                    descriptor,
                    !transfer.recv.is_empty(),
                    !transfer.send.is_empty(),
                )
            };
            wait_a_moment(&mut transfers.iter().map(waiting).collect::<Vec<_>>());
        }
    }
}

impl Transfer<'_> {
    /// Sends once and receives once, so that the caller can look at the deadline in between.
    fn advance(&mut self, mut stream: &TcpStream) -> Result<(), Failure> {
        if !self.send.is_empty() {
            self.send = &self.send[moved(stream.write(self.send), self.peer)?..];
        }
        if !self.recv.is_empty() {
            let got = moved(stream.read(self.recv), self.peer)?;
            self.recv = &mut std::mem::take(&mut self.recv)[got..];
        }
        Ok(())
    }
}

/// The bytes that were moved; 0: none now, but later.
fn moved(result: std::io::Result<usize>, peer: usize) -> Result<usize, Failure> {
    match result {
        Ok(0) => Err(Failure::lost(peer)),
        Ok(bytes) => Ok(bytes),
        Err(error) if is_for_later(&error) => Ok(0),
        Err(_) => Err(Failure::lost(peer)),
    }
}

/// The bytes of blocks that are as equal as possible.
fn block_sizes(count: usize, blocks: usize, element: usize) -> Vec<usize> {
    (0..blocks)
        .map(|block| (count / blocks + usize::from(block < count % blocks)) * element)
        .collect()
}

/// Cuts the data into parts of these sizes.
fn split<'a>(mut data: &'a mut [u8], sizes: &[usize]) -> Vec<&'a mut [u8]> {
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let (part, rest) = data.split_at_mut(size);
        parts.push(part);
        data = rest;
    }
    parts
}
