//! Prints what a walk over a file system finds.
//!
//!     fs owners IMAGE     OFFSET LENGTH OWNER OBJECT FILE_OFFSET PATHS, by offset, with tabs between them
//!     fs check IMAGE      what matches, what does not, and what cannot be read

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use blkfs::{
    Entry, Extent, FileSystem, Mismatch, Names, ObjectId, Owner, Owners, Problem, Visitor, Wanted,
};

#[derive(Default)]
struct Checks {
    matched: BTreeMap<&'static str, (u64, u64)>,
    mismatches: Vec<Mismatch>,
    problems: Vec<Problem>,
}

impl Visitor for Checks {
    fn extent(&mut self, _: Extent) {}

    fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        let sum = self.matched.entry(structure).or_default();
        *sum = (sum.0 + count, sum.1 + bytes);
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.mismatches.push(mismatch);
    }

    fn entry(&mut self, _: Entry<'_>) {}

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, verb, name] = arguments.as_slice() else { return Err("fs owners|check IMAGE".into()) };
    let image = blkimage::OpenOptions::new().open(name)?;
    let file_system = FileSystem::open(Arc::new(image))?.ok_or("no file system")?;
    println!("# {} {:?} {}", file_system.kind(), file_system.uuid(), file_system.size());
    file_system.remarks().iter().for_each(|remark| println!("# {remark}"));
    if verb == "check" {
        let mut checks = Checks::default();
        file_system.walk(Wanted { checks: true, ..Wanted::default() }, &mut checks)?;
        println!("{:#?}", (&checks.matched, &checks.mismatches, &checks.problems));
        std::process::exit((!checks.mismatches.is_empty() || !checks.problems.is_empty()).into());
    }
    let (owners, names) = (Owners::read(&file_system)?, Names::read(&file_system)?);
    println!("# partial: owners {}, names {}", owners.is_partial(), names.is_partial());
    for Extent { offset, length, owner } in owners.extents() {
        println!("{offset}\t{length}\t{}", text(owner, &names));
    }
    Ok(())
}

fn text(owner: &Owner, names: &Names) -> String {
    let paths = |object: ObjectId| {
        let paths = names.paths(object, 16);
        let paths: Vec<_> =
            paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        paths.join("\t")
    };
    match *owner {
        Owner::File { object, offset } => format!("file\t{object}\t{offset}\t{}", paths(object)),
        Owner::Directory { object } => format!("directory\t{object}\t-\t{}", paths(object)),
        Owner::Journal => "journal\t-\t-".to_owned(),
        Owner::Metadata { structure, object: Some(object) } => {
            format!("{structure}\t{object}\t-\t{}", paths(object))
        }
        Owner::Metadata { structure, object: None } => format!("{structure}\t-\t-"),
        Owner::Free => "free\t-\t-".to_owned(),
    }
}
