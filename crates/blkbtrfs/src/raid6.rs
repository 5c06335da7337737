//! The arithmetic of RAID5 and RAID6: what the parities of a row are.
//!
//! Bytes are elements of GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. With data D_i, P is the sum of all
//! D_i and Q the sum of 2^i D_i: H. Peter Anvin, "The mathematics of RAID-6".

/// The sums of a row of data.
#[derive(Default)]
pub(crate) struct Sums {
    p: Vec<u8>,
    q: Vec<u8>,
    has_q: bool,
}

impl Sums {
    /// Begins a row of `length` bytes in each column, with `parities` to compute.
    pub(crate) fn start(&mut self, length: usize, parities: u64) {
        self.has_q = parities > 1;
        self.p.clear();
        self.p.resize(length, 0);
        self.q.clear();
        self.q.resize(if self.has_q { length } else { 0 }, 0);
    }

    /// Takes the next column: the last one first, so that each doubling of Q raises the power of all
    /// before it.
    pub(crate) fn take(&mut self, data: &[u8]) {
        add(&mut self.p, data);
        if self.has_q {
            self.q.iter_mut().zip(data).for_each(|(q, data)| *q = double(*q) ^ data);
        }
    }

    /// P, or Q for 1.
    pub(crate) fn parity(&self, number: usize) -> &[u8] {
        if number == 0 { &self.p } else { &self.q }
    }
}

fn add(sum: &mut [u8], data: &[u8]) {
    sum.iter_mut().zip(data).for_each(|(sum, data)| *sum ^= data);
}

fn double(value: u8) -> u8 {
    value << 1 ^ if value & 0x80 != 0 { 0x1d } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_their_definition() {
        let columns: [[u8; 4]; 3] = [[1, 0x80, 0xff, 7], [2, 0x81, 0, 7], [3, 0xc0, 0x55, 7]];
        let mut sums = Sums::default();
        sums.start(4, 2);
        columns.iter().rev().for_each(|column| sums.take(column));
        let [a, b, c] = columns;
        let p: Vec<u8> = (0..4).map(|at| a[at] ^ b[at] ^ c[at]).collect();
        let q: Vec<u8> = (0..4).map(|at| a[at] ^ double(b[at]) ^ double(double(c[at]))).collect();
        assert_eq!([sums.parity(0), sums.parity(1)], [&p[..], &q[..]]);
        assert_eq!((double(0x80), double(0x7f)), (0x1d, 0xfe));
    }
}
