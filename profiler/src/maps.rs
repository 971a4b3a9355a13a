//! /proc/PID/maps: the library at an address, and the range of the code cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use ahash::HashMap;

/// Minimum time between two reads of the maps, ns.
const REFRESH_NS: u64 = 200_000_000;
/// The same if the leaf is in unknown code: such code must exist, while other addresses may come from a wrong frame
/// pointer.
const REFRESH_OF_LEAF_NS: u64 = 10_000_000;
/// For how long an address that was in no mapping is not looked for again, ns: a read takes about a millisecond, and many
/// chains have the same wrong address.
const UNMAPPED_NS: u64 = 5_000_000_000;
/// Maximum number of such pages that are kept.
const MOST_UNMAPPED: usize = 1024;
/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;

/// Maximum length of a process's list, bytes: it may have 65,530 mappings by default, of files with long names.
const MOST_TEXT: usize = 64 << 20;

/// Maximum number of mappings that are kept, including earlier ones.
const MOST_MAPPINGS: usize = 1 << 16;

/// One executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// The file; empty for anonymous memory.
    pub path: String,
    /// The address of the start of the file, if it is mapped before this mapping or by it.
    pub header: Option<u64>,
}

/// Executable mappings of a process, by address. Keeps the file open, so a process that has dropped its capabilities
/// can read it again.
#[derive(Debug)]
pub struct Maps {
    file: File,
    mappings: Vec<Mapping>,
    code_cache: (u64, u64),
    code_cache_told: bool,
    jvm: (u64, u64),
    /// The ranges of libraries other than HotSpot and the C library, by address.
    others: Vec<(u64, u64)>,
    refreshed: u64,
    /// How often the mappings were read.
    reads: u64,
    /// Pages that were in no mapping, each with the time of the read, ns.
    unmapped: HashMap<u64, u64>,
}

impl Maps {
    /// Opens and reads the maps of `pid`.
    pub fn open(pid: u32) -> io::Result<Self> {
        Self::read_from(Self::file(pid)?)
    }

    /// The file of the maps of `pid`.
    pub(crate) fn file(pid: u32) -> io::Result<File> {
        File::open(format!("/proc/{pid}/maps"))
    }

    /// Reads the maps from their file, at any offset: others may share it.
    pub(crate) fn read_from(file: File) -> io::Result<Self> {
        let mut maps = Self {
            file,
            mappings: Vec::new(),
            code_cache: (0, 0),
            code_cache_told: false,
            jvm: (0, 0),
            others: Vec::new(),
            refreshed: 0,
            reads: 0,
            unmapped: HashMap::default(),
        };
        maps.refresh()?;
        Ok(maps)
    }

    /// Sets the range that the JVM announced for generated code; parts of it are committed as they fill.
    pub(crate) fn set_code_cache(&mut self, addresses: Range<u64>) {
        if !addresses.is_empty() {
            self.code_cache = (addresses.start, addresses.end);
            self.code_cache_told = true;
        }
    }

    /// Sets the range of libjvm.
    #[cfg(test)]
    pub(crate) fn set_jvm(&mut self, low: u64, high: u64) {
        self.jvm = (low, high);
    }

    /// Reads the maps again.
    pub fn refresh(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            match self.file.read_at(&mut chunk, text.len() as u64)? {
                0 => break,
                _ if text.len() > MOST_TEXT => break,
                read => text.extend_from_slice(&chunk[..read]),
            }
        }
        let mappings = parse(&String::from_utf8_lossy(&text));
        if mappings.is_empty() {
            // The process has ended; the last known mappings are still useful.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        self.mappings = with_missing(mappings, &self.mappings);
        self.reads += 1;
        if !self.code_cache_told {
            // The parts of it that the JVM has committed so far.
            let anonymous = || self.mappings.iter().filter(|m| m.path.is_empty());
            let start = anonymous().map(|m| m.start).min().unwrap_or(0);
            let end = anonymous().map(|m| m.end).max().unwrap_or(0);
            self.code_cache = (start, end);
        }
        let mut jvm = self
            .mappings
            .iter()
            .filter(|m| m.path.ends_with("/libjvm.so"));
        self.jvm = jvm.next().map_or((0, 0), |m| (m.start, m.end));
        let others = self.mappings.iter().filter(|m| is_other_library(&m.path));
        self.others = others.map(|m| (m.start, m.end)).collect();
        Ok(())
    }

    /// Reads the maps again if an address of a callchain (leaf first) is in no mapping (a library was loaded), but not
    /// for every invalid address. Only works while the process lives.
    pub(crate) fn keep_up(&mut self, chain: &[u64], now: u64) {
        let is_new = |ip: u64| !self.is_code(ip) && !self.was_unmapped(ip, now);
        let Some(position) = chain.iter().position(|ip| is_new(*ip)) else {
            return;
        };
        let rest = match position {
            0 => REFRESH_OF_LEAF_NS,
            _ => REFRESH_NS,
        };
        if now.saturating_sub(self.refreshed) > rest {
            self.refreshed = now;
            if self.refresh().is_err() {
                return;
            }
            if self.unmapped.len() > MOST_UNMAPPED {
                self.unmapped.clear();
            }
            for ip in &chain[position..] {
                if !self.is_code(*ip) {
                    self.unmapped.insert(ip >> PAGE_BITS, now);
                }
            }
        }
    }

    /// Whether an address was in no mapping a moment ago.
    fn was_unmapped(&self, ip: u64, now: u64) -> bool {
        let read = self.unmapped.get(&(ip >> PAGE_BITS));
        read.is_some_and(|read| now.saturating_sub(*read) < UNMAPPED_NS)
    }

    /// The number of reads so far. Until it changes, an address stays in its mapping.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    /// Whether an address is in generated code, or in a known library.
    pub fn is_code(&self, address: u64) -> bool {
        self.in_code_cache(address) || self.find(address).is_some()
    }

    /// The mapping that contains an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        self.mappings[..after].last().filter(|m| address < m.end)
    }

    /// Whether an address is in a mapped file.
    pub(crate) fn in_file(&self, address: u64) -> bool {
        self.find(address)
            .is_some_and(|mapping| !mapping.path.is_empty())
    }

    /// Where the files begin whose names begin so.
    pub(crate) fn files_named(&self, begin: &str) -> impl Iterator<Item = u64> {
        let name = move |mapping: &&Mapping| {
            let name = mapping.path.rsplit('/').next();
            name.is_some_and(|name| name.starts_with(begin))
        };
        let files = self.mappings.iter().filter(name);
        files.filter_map(|mapping| mapping.header)
    }

    /// Whether an address is in HotSpot itself, which keeps frame pointers.
    pub fn in_jvm(&self, address: u64) -> bool {
        (self.jvm.0..self.jvm.1).contains(&address)
    }

    /// Whether an address is in a library other than HotSpot and the C library.
    pub(crate) fn in_other_library(&self, address: u64) -> bool {
        let after = self.others.partition_point(|(start, _)| *start <= address);
        let last = self.others[..after].last();
        last.is_some_and(|(_, end)| address < *end)
    }

    /// Whether an address is in the JVM's range for generated code.
    pub fn in_code_cache(&self, address: u64) -> bool {
        (self.code_cache.0..self.code_cache.1).contains(&address)
    }
}

/// Whether a mapping's file is a library other than HotSpot and the C library.
fn is_other_library(path: &str) -> bool {
    const THESE: [&str; 6] = [
        "libjvm.so",
        "libc.",
        "libc-",
        "libpthread",
        "ld-musl",
        "[vdso]",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    !name.is_empty() && !THESE.iter().any(|start| name.starts_with(start))
}

/// New mappings, and old ones whose range is still free: the kernel may omit mappings from a list that is read during
/// changes, and samples that still wait need the name of an unloaded library.
fn with_missing(mut new: Vec<Mapping>, old: &[Mapping]) -> Vec<Mapping> {
    let free = |old: &&Mapping| {
        let after = new.partition_point(|mapping| mapping.start < old.end);
        new[..after]
            .last()
            .is_none_or(|before| before.end <= old.start)
    };
    let room = MOST_MAPPINGS.saturating_sub(new.len());
    let missing: Vec<Mapping> = old.iter().filter(free).take(room).cloned().collect();
    new.truncate(MOST_MAPPINGS);
    new.extend(missing);
    new.sort_by_key(|mapping| mapping.start);
    new
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut file_start: Option<(&str, u64)> = None;
    let executable = text.lines().filter_map(|line| {
        let (mapping, is_executable) = Line::parse(line)?;
        if mapping.offset == 0 && !mapping.path.is_empty() {
            file_start = Some((mapping.path, mapping.start));
        }
        let header = file_start.filter(|(path, _)| *path == mapping.path);
        is_executable.then(|| Mapping {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            path: mapping.path.to_owned(),
            header: header.map(|(_, start)| start),
        })
    });
    executable.collect()
}

/// A line of the list.
struct Line<'a> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'a str,
}

impl<'a> Line<'a> {
    /// Parses `7f..-7f.. r-xp 00001000 fe:00 1234   /path with spaces`. Also returns whether the mapping is executable.
    fn parse(line: &'a str) -> Option<(Self, bool)> {
        let mut rest = line;
        let mut field = || {
            rest = rest.trim_start();
            let (field, tail) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            rest = tail;
            field
        };
        let (start, end) = field().split_once('-')?;
        let permissions = field();
        let offset = field();
        let (_device, _inode) = (field(), field());
        let line = Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            path: rest.trim_start().trim_end_matches(" (deleted)"),
        };
        Some((line, permissions.contains('x')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_libraries_and_the_code_cache() {
        let text = "\
7f10-7f20 rwxp 00000000 00:00 0 \n\
7f2f-7f30 r--p 00000000 fe:00 12    /usr/lib/my lib.so\n\
7f30-7f40 r-xp 00001000 fe:00 12    /usr/lib/my lib.so\n\
7f40-7f50 r--p 00001000 fe:00 12    /usr/lib/my lib.so\n\
7f60-7f70 rwxp 00000000 00:00 0 \n";
        let mappings = parse(text);
        assert_eq!(mappings.len(), 3);
        assert_eq!(mappings[1].path, "/usr/lib/my lib.so");
        assert_eq!((mappings[1].start, mappings[1].offset), (0x7f30, 0x1000));
        let headers: Vec<_> = mappings.iter().map(|mapping| mapping.header).collect();
        assert_eq!(headers, [None, Some(0x7f2f), None]);
    }

    #[test]
    fn what_a_list_leaves_out_is_kept_until_its_place_is_taken() {
        let mapping = |start, end, path: &str| Mapping {
            start,
            end,
            offset: 0,
            path: path.to_owned(),
            header: None,
        };
        let old = [
            mapping(10, 20, "a"),
            mapping(20, 30, "b"),
            mapping(40, 50, "c"),
        ];
        let new = vec![mapping(0, 10, "d"), mapping(25, 40, "e")];
        let paths: Vec<String> = with_missing(new, &old)
            .into_iter()
            .map(|mapping| mapping.path)
            .collect();
        assert_eq!(paths, ["d", "a", "e", "c"]);
    }

    #[test]
    fn a_list_that_always_changes_does_not_grow_for_ever() {
        let list = |from: u64| -> Vec<Mapping> {
            let mapping = |address: u64| Mapping {
                start: 2 * address + from,
                end: 2 * address + from + 1,
                offset: 0,
                path: String::new(),
                header: None,
            };
            (0..50_000).map(mapping).collect()
        };
        let kept = with_missing(list(0), &list(1));
        assert_eq!(kept.len(), MOST_MAPPINGS);
        assert!(kept.is_sorted_by_key(|mapping| mapping.start));
        let new = kept.iter().filter(|mapping| mapping.start % 2 == 0);
        assert_eq!(new.count(), 50_000, "the new ones first");
    }

    #[test]
    fn other_libraries_have_other_names() {
        for path in [
            "/a/libjvm.so",
            "/a/libc.so.6",
            "/a/libc-2.17.so",
            "[vdso]",
            "",
        ] {
            assert!(!is_other_library(path), "{path}");
        }
        for path in ["/a/libzip.so", "/a/libcrypto.so.3", "/a/java"] {
            assert!(is_other_library(path), "{path}");
        }
    }

    #[test]
    fn finds_this_very_function() {
        let maps = Maps::open(std::process::id()).unwrap();
        let here = finds_this_very_function as fn() as usize as u64;
        assert!(maps.find(here).unwrap().path.contains("unfuse_profiler"));
    }
}
