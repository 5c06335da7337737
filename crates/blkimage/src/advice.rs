//! The words of hints. Each program writes an option in its own way.

use crate::compression::Compression;
use crate::hint::Hint;
use crate::option_table::OpenOption;
use crate::recognise::way::Way;

impl Hint {
    /// Describes what to do. `say` writes an option, with a value or by its name alone, as the users of a program do. `describe`
    /// describes how to get a disk out of the file, like [`Way::describe`].
    pub fn describe(
        self,
        say: impl Fn(OpenOption, Option<&str>) -> String,
        describe: impl Fn(Way) -> Option<String>,
    ) -> String {
        use OpenOption::{BackingFormat, Follow, ForceShare, Format, Reader, Secret, VpcSize};
        let raw = |compression: Option<Compression>| match compression {
            None => format!("{} reads the bytes of the file itself", say(Format, Some("raw"))),
            Some(method) => {
                let raw = say(Format, Some(&format!("raw+{method}")));
                format!("{raw} reads its content as a disk")
            }
        };
        match self {
            Self::Follow => {
                let (beneath, any) = (say(Follow, Some("beneath")), say(Follow, Some("any")));
                format!("{beneath} allows files beneath its folder, {any} all")
            }
            Self::FollowAny => format!("{} allows it", say(Follow, Some("any"))),
            Self::BackingFormat => format!("give {}", say(BackingFormat, None)),
            Self::RecordFormat => {
                let option = say(BackingFormat, None);
                format!("record it with qemu-img rebase -u -F, or give {option}")
            }
            Self::VpcSize => format!("{} gives it another size", say(VpcSize, None)),
            Self::CurrentSize => {
                let current = say(VpcSize, Some("current"));
                format!("{current} reads the size that its header states")
            }
            Self::ForceShare => format!("{} reads it anyway", say(ForceShare, None)),
            Self::Format => format!("say with {} what it is", say(Format, None)),
            Self::Raw => raw(None),
            Self::RawContent { compression } => raw(compression),
            Self::NoDisk { way, compression } => {
                let way = match way {
                    Way::Compression(method) => {
                        let method = say(Format, Some(method.name()));
                        Some(format!("{method} reads its content"))
                    }
                    way => describe(way),
                };
                let bytes = raw(compression);
                way.map_or_else(|| bytes.clone(), |way| format!("{way}; {bytes}"))
            }
            Self::Secret => {
                let (secret, raw) = (say(Secret, None), say(Format, Some("raw")));
                format!(
                    "give the secret with {secret}, or use {raw} for the bytes of the file itself"
                )
            }
            Self::Reader => {
                let (reader, raw) = (say(Reader, Some("qemu")), say(Format, Some("raw")));
                format!("leave out {reader}, or use {raw} for the bytes of the file itself")
            }
            Self::MaxZeros => format!("{} allows more", say(OpenOption::MaxZeros, None)),
            Self::MaxMemory => format!("{} allows more", say(OpenOption::MaxMemory, None)),
            Self::Download => {
                let download = describe(Way::Command("curl -LO FILE downloads it"));
                download.unwrap_or_else(|| "download it".to_owned())
            }
            Self::Timeout => format!("{} waits longer", say(OpenOption::Timeout, None)),
        }
    }
}
