//! Compiles rules to the classic BPF that the kernel runs.

use std::collections::BTreeMap;

use nix::libc;

pub use nix::libc::sock_filter as Instruction;

/// Action for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    Allow,
    /// Fails with this errno.
    Fail(i32),
    /// Fails with `EPERM` if one of `tests` holds, and none of `unless`.
    FailIf {
        tests: Vec<Test>,
        unless: Vec<Test>,
    },
    /// Fails with `EPERM` unless all tests of one of the lists hold.
    FailUnless(Vec<Vec<Test>>),
}

/// A test of the low 32 bits of an argument.
///
/// The kernel uses only these bits of the tested arguments. A test of the high bits would let a
/// caller evade the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    pub argument: u8,
    pub mask: u32,
    pub holds: Holds,
}

/// Condition on an argument under its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Equal(u32),
    NotZero,
}

/// Returns the program for calls of the ABI `arch`. Calls without a rule are allowed. Calls above
/// the last rule are treated like it.
pub fn assemble(arch: u32, rules: &BTreeMap<u32, Rule>) -> Vec<Instruction> {
    let mut ranges = vec![(0, &Rule::Allow)];
    let end = rules.last_key_value().map_or(0, |(last, _)| *last);
    for (&number, rule) in rules {
        // Replaces the end of the previous range.
        ranges.pop_if(|last| last.0 == number);
        ranges.push((number, rule));
        if number != end {
            ranges.push((number + 1, &Rule::Allow));
        }
    }
    ranges.dedup_by(|later, earlier| later.1 == earlier.1);
    let mut program = vec![
        load(ARCH),
        jump(libc::BPF_JEQ, arch, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    program.append(&mut tree(&ranges));
    program
}

/// Returns the instructions that find the range of a number and apply its rule.
fn tree(ranges: &[(u32, &Rule)]) -> Vec<Instruction> {
    if let [(_, rule)] = ranges {
        return rule.instructions();
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (mut below, mut above) = (tree(low), tree(high));
    let mut program = match u8::try_from(below.len()) {
        Ok(skip) => vec![jump(libc::BPF_JGE, high[0].0, skip, 0)],
        // Conditional jumps reach only 255 instructions.
        Err(_) => vec![jump(libc::BPF_JGE, high[0].0, 0, 1), skip(below.len() as u32)],
    };
    program.append(&mut below);
    program.append(&mut above);
    program
}

impl Rule {
    fn instructions(&self) -> Vec<Instruction> {
        match self {
            Self::Allow => vec![answer(libc::SECCOMP_RET_ALLOW)],
            Self::Fail(errno) => vec![fail(*errno)],
            Self::FailIf { tests, unless } => {
                let mut program = Vec::new();
                let allowed = unless.iter().map(|test| (test, answer(libc::SECCOMP_RET_ALLOW)));
                let failed = tests.iter().map(|test| (test, fail(libc::EPERM)));
                for (test, action) in allowed.chain(failed) {
                    program.extend(test.instructions(1));
                    program.push(action);
                }
                program.push(answer(libc::SECCOMP_RET_ALLOW));
                program
            }
            Self::FailUnless(lists) => {
                let mut program = Vec::new();
                for tests in lists {
                    let mut rest = vec![answer(libc::SECCOMP_RET_ALLOW)];
                    for test in tests.iter().rev() {
                        let mut list = test.instructions(rest.len() as u8);
                        list.append(&mut rest);
                        rest = list;
                    }
                    program.append(&mut rest);
                }
                program.push(fail(libc::EPERM));
                program
            }
        }
    }
}

impl Test {
    /// Returns instructions that continue if the test holds, and skip `skipped` instructions
    /// otherwise.
    fn instructions(self, skipped: u8) -> Vec<Instruction> {
        let mut program = vec![load(ARGUMENTS + 8 * u32::from(self.argument) + LOW_HALF)];
        if self.mask != u32::MAX {
            program.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, self.mask));
        }
        program.push(match self.holds {
            Holds::Equal(value) => jump(libc::BPF_JEQ, value, 0, skipped),
            Holds::NotZero => jump(libc::BPF_JEQ, 0, skipped, 0),
        });
        program
    }
}

fn load(offset: u32) -> Instruction {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn jump(condition: u32, value: u32, if_true: u8, if_false: u8) -> Instruction {
    instruction(libc::BPF_JMP | condition | libc::BPF_K, if_true, if_false, value)
}

fn skip(count: u32) -> Instruction {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, count)
}

fn fail(errno: i32) -> Instruction {
    answer(libc::SECCOMP_RET_ERRNO | errno as u32 & libc::SECCOMP_RET_DATA)
}

fn answer(value: u32) -> Instruction {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code: code as u16, jt, jf, k }
}

/// Offsets in `struct seccomp_data` of the call's number, ABI and arguments.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCH: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;
pub(super) const LOW_HALF: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };
