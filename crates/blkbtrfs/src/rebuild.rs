//! Rebuilds bytes from parity if they cannot be read or have a wrong checksum.
//!
//! A wrong checksum does not show which stripe of a row is wrong, so there are several ways to
//! compute the wanted bytes: from P, from Q, and with RAID6 from both as if another stripe were
//! also wrong. The caller decides which result is correct.

use crate::chunk::{Chunk, Run};
use crate::devices::Devices;
use crate::raid6::{MAX_COLUMNS, Sums, Way};

/// Bytes within one stripe.
struct Piece {
    start: usize,
    end: usize,
    rest: Rest,
}

/// Sums over the rest of a row, and the ways to compute bytes from them.
struct Rest {
    sums: Sums,
    ways: Vec<Way>,
}

/// Computes the bytes at `logical` from the rest of their rows, trying one way after the other
/// until `accept` accepts the content of `buffer`. If it accepts none, returns the error of the
/// first way, which is the most likely one. Returns `None` if there is no parity, or if too much of
/// the row cannot be read.
///
/// If only some of the bytes can be read, computes only the others.
pub(crate) fn rebuild<T, E>(
    devices: &Devices,
    chunk: &Chunk,
    logical: u64,
    buffer: &mut [u8],
    mut accept: impl FnMut(&[u8]) -> Result<T, E>,
) -> Option<Result<T, E>> {
    if chunk.profile.parities() == 0 || chunk.data_stripes() > MAX_COLUMNS {
        return None;
    }
    let mut pieces = Vec::new();
    let mut lost = Vec::new();
    let mut start = 0;
    while start < buffer.len() {
        let run = chunk.map(logical + start as u64, 0);
        let length = run.length.min((buffer.len() - start) as u64) as usize;
        let end = start + length;
        pieces.push((start, end));
        if devices.read(run.device, run.physical, &mut buffer[start..end]).is_err() {
            lost.push((start, end));
        }
        start = end;
    }
    if lost.is_empty() {
        lost = pieces;
    }
    let pieces: Vec<Piece> = lost
        .into_iter()
        .map(|(start, end)| {
            let rest = rest_of_row(devices, chunk, logical + start as u64, end - start)?;
            Some(Piece { start, end, rest })
        })
        .collect::<Option<_>>()?;
    let ways = pieces.iter().map(|piece| piece.rest.ways.len()).min().unwrap_or(0);
    let mut first = None;
    for index in 0..ways {
        for Piece { start, end, rest } in &pieces {
            rest.sums.solve(rest.ways[index], &mut buffer[*start..*end]);
        }
        match accept(buffer) {
            Ok(accepted) => return Some(Ok(accepted)),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map(Err)
}

/// Reads the rest of a row at the location of `length` bytes of one of its stripes.
fn rest_of_row(devices: &Devices, chunk: &Chunk, logical: u64, length: usize) -> Option<Rest> {
    let (row, column, offset) = chunk.place(logical);
    let (data, parities) = (chunk.data_stripes(), chunk.profile.parities());
    let place = |column| {
        let Run { device, physical, .. } = chunk.place_in_row(row, column);
        (device, physical + offset)
    };
    let others = || (0..data + parities).filter(|other| *other != column);
    // Avoids reads that cannot lead to a result.
    let missing = others().filter(|other| !devices.all().contains_key(&place(*other).0));
    if missing.count() as u64 >= parities {
        return None;
    }
    let mut part = vec![0; length];
    let mut sums = Sums::default();
    sums.start(length, parities);
    let mut lost = Vec::new();
    for other in (0..data).rev() {
        let (device, physical) = place(other);
        if other != column && devices.read(device, physical, &mut part).is_ok() {
            sums.take(&part);
            continue;
        }
        sums.take_none();
        if other != column {
            lost.push(other as usize);
        }
        if lost.len() as u64 == parities {
            return None;
        }
    }
    let mut has_parity = [false; 2];
    for (number, has_parity) in (0..parities as usize).zip(&mut has_parity) {
        let (device, physical) = place(data + number as u64);
        *has_parity = devices.read(device, physical, &mut part).is_ok();
        if *has_parity {
            sums.add_parity(number, &part);
        }
    }
    let column = column as usize;
    let mut ways = Vec::new();
    match (&lost[..], has_parity) {
        ([other], [true, true]) => ways.push(Way::from_both(column, *other)),
        ([], [has_p, has_q]) => {
            ways.extend(has_p.then_some(Way::FROM_P));
            ways.extend(has_q.then(|| Way::from_q(column)));
            if has_p && has_q {
                let others = (0..data as usize).filter(|other| *other != column);
                ways.extend(others.map(|other| Way::from_both(column, other)));
            }
        }
        _ => {}
    }
    Some(Rest { sums, ways })
}
