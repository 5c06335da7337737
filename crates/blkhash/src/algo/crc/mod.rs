//! Cyclic redundancy checks, through crc-fast, which uses carry-less multiplication if the CPU has
//! it.

mod polynomial;

use crc_fast::CrcAlgorithm;

use self::polynomial::Modulus;
pub(crate) use self::polynomial::Shift;
use super::hash::{Hash, finish_each, update_zeros};
use crate::Algorithm;

/// A CRC of any kind. Its digest is the value in big endian.
#[derive(Clone, Debug)]
pub(crate) struct Crc {
    digest: crc_fast::Digest,
    model: &'static Model,
}

/// The parameters of a CRC.
#[derive(Debug)]
pub(super) struct Model {
    algorithm: CrcAlgorithm,
    modulus: Modulus,
    /// The initial register, and the difference between register and digest. They are the same for
    /// all of these CRCs.
    mask: u64,
}

impl Crc {
    /// Returns the initial CRC, or `None` if the algorithm is not a CRC.
    pub(crate) fn of(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::Crc32 => Some(Self::new(&CRC32)),
            Algorithm::Crc32c => Some(Self::new(&CRC32C)),
            Algorithm::Crc64 => Some(Self::new(&CRC64)),
            Algorithm::Crc64Nvme => Some(Self::new(&CRC64NVME)),
            _ => None,
        }
    }

    /// Creates an empty CRC.
    pub(super) fn new(model: &'static Model) -> Self {
        Self { digest: crc_fast::Digest::new(model.algorithm), model }
    }

    /// Returns the factor of `length` bytes, for [`append`](Self::append).
    pub(crate) fn shift(&self, length: u64) -> Shift {
        self.model.modulus.shift(length)
    }

    /// Appends bytes, given by their digest and the factor of their length.
    pub(crate) fn append(&mut self, digest: &[u8], shift: Shift) {
        let value = digest.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let shifted = self.model.modulus.apply(shift, self.digest.get_state() ^ self.model.mask);
        self.set_register(shifted ^ value ^ self.model.mask);
    }

    /// Appends the zero bytes that `shift` stands for.
    pub(crate) fn append_zeros(&mut self, shift: Shift) {
        self.set_register(self.model.modulus.apply(shift, self.digest.get_state()));
    }

    fn set_register(&mut self, register: u64) {
        self.digest = crc_fast::Digest::new_with_init_state(self.model.algorithm, register);
    }
}

impl Hash for Crc {
    fn update(&mut self, input: &[u8]) {
        self.digest.update(input);
    }

    fn update_zeros(&mut self, count: u64) {
        if count < LONG_RUN {
            update_zeros(self, count);
        } else {
            self.append_zeros(self.shift(count));
        }
    }

    fn finalize_into(self, digest: &mut [u8]) {
        write(self.digest.finalize(), digest);
    }

    // Avoids copying a state, which holds all parameters. This matters for short blocks.
    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if self.digest.get_state() != self.model.mask {
            return finish_each(self, inputs, digests);
        }
        let size = self.model.modulus.width as usize / 8;
        for (input, digest) in inputs.iter().zip(digests.chunks_exact_mut(size)) {
            write(crc_fast::checksum(self.model.algorithm, input), digest);
        }
    }
}

/// Writes the low bytes of a value to the digest.
fn write(value: u64, digest: &mut [u8]) {
    let value = value.to_be_bytes();
    digest.copy_from_slice(&value[value.len() - digest.len()..]);
}

/// Length from which multiplying is at least as fast as hashing the zeros, in bytes.
const LONG_RUN: u64 = 128 << 10;

pub(super) static CRC32: Model = Model {
    algorithm: CrcAlgorithm::Crc32IsoHdlc,
    modulus: Modulus { width: 32, coefficients: 0x04c1_1db7, is_reflected: true },
    mask: 0xffff_ffff,
};

pub(super) static CRC32C: Model = Model {
    algorithm: CrcAlgorithm::Crc32Iscsi,
    modulus: Modulus { width: 32, coefficients: 0x1edc_6f41, is_reflected: true },
    mask: 0xffff_ffff,
};

pub(super) static CRC64: Model = Model {
    algorithm: CrcAlgorithm::Crc64Ecma182,
    modulus: Modulus { width: 64, coefficients: 0x42f0_e1eb_a9ea_3693, is_reflected: false },
    mask: 0,
};

pub(super) static CRC64NVME: Model = Model {
    algorithm: CrcAlgorithm::Crc64Nvme,
    modulus: Modulus { width: 64, coefficients: 0xad93_d235_94c9_3659, is_reflected: true },
    mask: u64::MAX,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BitOrder;
    use proptest::prelude::*;

    fn value(crc: &Crc) -> u64 {
        crc.digest.finalize()
    }

    fn all() -> impl Strategy<Value = Crc> {
        let all: Vec<Crc> = Algorithm::ALL.iter().copied().filter_map(Crc::of).collect();
        prop::sample::select(all)
    }

    #[test]
    fn the_table_has_every_crc_and_its_order_of_bits() {
        for &algorithm in Algorithm::ALL {
            let order = Crc::of(algorithm).map(|crc| match crc.model.modulus.is_reflected {
                true => BitOrder::LowestFirst,
                false => BitOrder::HighestFirst,
            });
            assert_eq!(algorithm.properties().bit_order, order, "{algorithm}");
        }
    }

    proptest! {
        #[test]
        fn appends_a_part(
            start in all(),
            head in prop::collection::vec(any::<u8>(), 0..300),
            tail in prop::collection::vec(any::<u8>(), 0..300),
            rest in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut whole = start.clone();
            whole.update(&[&head[..], &tail, &rest].concat());

            let (mut crc, mut part) = (start.clone(), start);
            crc.update(&head);
            part.update(&tail);
            let size = crc.model.modulus.width as usize / 8;
            let mut digest = vec![0; size];
            part.finalize_into(&mut digest);
            crc.append(&digest, crc.shift(tail.len() as u64));
            crc.update(&rest);
            prop_assert_eq!(value(&crc), value(&whole));
        }

        #[test]
        fn finish_many_equals_one_by_one(
            start in all(),
            head in prop::collection::vec(any::<u8>(), 0..20),
            inputs in prop::collection::vec(any::<[u8; 100]>(), 0..5),
        ) {
            let mut crc = start;
            crc.update(&head);
            let size = crc.model.modulus.width as usize / 8;
            let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input[..]).collect();
            let mut many = vec![0; inputs.len() * size];
            let mut each = many.clone();
            crc.finish_many(&inputs, &mut many);
            finish_each(&crc, &inputs, &mut each);
            prop_assert_eq!(many, each);
        }

        #[test]
        fn appends_zeros(start in all(), head in any::<[u8; 5]>(), count in 0..2 * LONG_RUN) {
            let (mut crc, mut whole) = (start.clone(), start);
            crc.update(&head);
            whole.update(&head);
            crc.append_zeros(crc.shift(count));
            whole.update(&vec![0; count as usize]);
            prop_assert_eq!(value(&crc), value(&whole));

            crc.update_zeros(count);
            whole.update(&vec![0; count as usize]);
            prop_assert_eq!(value(&crc), value(&whole));
        }
    }

    #[test]
    fn exponents_of_64_bits() {
        let start = Crc::of(Algorithm::Crc64Nvme).unwrap();
        let (mut once, mut twice) = (start.clone(), start);
        once.update(b"x");
        twice.update(b"x");
        once.append_zeros(once.shift(u64::MAX - 1));
        for _ in 0..2 {
            twice.append_zeros(twice.shift(u64::MAX / 2));
        }
        assert_eq!(value(&once), value(&twice));
    }
}
