//! Removes from texts what identifies a person or a machine.

use std::path::Path;

/// The names and directories that must not appear in a report.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    /// Directories below which paths are private.
    homes: Vec<String>,
    /// Names of users.
    users: Vec<String>,
    /// Names of hosts.
    hosts: Vec<String>,
}

/// Users of every machine. Their names identify nobody.
const COMMON: [&str; 2] = ["root", "nobody"];

impl Secrets {
    /// Finds the names of this process's user, also of the user before `sudo`, and of the machine.
    pub(super) fn find() -> Self {
        let mut secrets = Self::default();
        let variable = |name: &str| std::env::var(name).ok();
        let user = nix::unistd::User::from_uid(nix::unistd::getuid());
        if let Some(user) = user.ok().flatten() {
            secrets.home(&user.dir);
            secrets.user(user.name);
        }
        for name in ["USER", "LOGNAME", "SUDO_USER"] {
            variable(name)
                .into_iter()
                .for_each(|name| secrets.user(name));
        }
        variable("HOME")
            .into_iter()
            .for_each(|home| secrets.home(Path::new(&home)));
        let host = nix::unistd::gethostname().ok();
        let host = host.and_then(|host| host.into_string().ok());
        secrets.host(host.unwrap_or_default());
        secrets
    }

    fn home(&mut self, home: &Path) {
        let home = home.to_string_lossy();
        // Some daemons have `/` as their home.
        let home = home.trim_end_matches('/');
        if !home.is_empty() {
            self.homes.push(home.to_owned());
        }
    }

    fn user(&mut self, name: String) {
        if !name.is_empty() && !COMMON.contains(&name.as_str()) {
            self.users.push(name);
        }
    }

    fn host(&mut self, name: String) {
        let short = name.split('.').next().unwrap_or_default().to_owned();
        for name in [name, short] {
            if !name.is_empty() && name != "localhost" {
                self.hosts.push(name);
            }
        }
    }

    /// The text with `~/…` for paths below a home directory, `USER` and `HOST`.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = self.without_paths(text);
        for host in &self.hosts {
            text = replace_words(&text, host, "HOST");
        }
        for user in &self.users {
            text = replace_words(&text, user, "USER");
        }
        text
    }

    fn without_paths(&self, text: &str) -> String {
        let mut rest = text;
        let mut clean = String::with_capacity(text.len());
        while let Some((start, length)) = self.first_home(rest) {
            clean.push_str(&rest[..start]);
            let below = &rest[start + length..];
            // Paths can contain spaces, so a path ends only where punctuation surely ends it.
            let ends = ["\n", ")", ": ", ", "].iter();
            let end = ends.filter_map(|end| below.find(end)).min();
            let end = end.unwrap_or(below.len());
            clean.push_str(if end > 0 { "~/…" } else { "~" });
            rest = &below[end..];
        }
        clean.push_str(rest);
        clean
    }

    /// Where the first path in or below a home directory begins, and the length of that directory.
    fn first_home(&self, text: &str) -> Option<(usize, usize)> {
        let known = self.homes.iter().map(String::as_str);
        let known = known.flat_map(|home| {
            text.match_indices(home)
                .map(move |(offset, _)| (offset, home.len()))
        });
        // Homes of other users.
        let of_users = text.match_indices("/home/").map(|(offset, prefix)| {
            let name = &text[offset + prefix.len()..];
            let end = name.find(|c: char| c == '/' || c.is_whitespace());
            (offset, prefix.len() + end.unwrap_or(name.len()))
        });
        let is_whole = |(offset, length): &(usize, usize)| {
            let after = text[offset + length..].chars().next();
            after.is_none_or(|c| !c.is_alphanumeric() && !"-_.".contains(c))
        };
        let all = known.chain(of_users).filter(is_whole);
        all.min_by_key(|(offset, length)| (*offset, std::cmp::Reverse(*length)))
    }
}

/// Replaces a name where it is not a part of a longer word.
fn replace_words(text: &str, name: &str, by: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(offset) = rest.find(name) {
        let (before, after) = (&rest[..offset], &rest[offset + name.len()..]);
        let is_part = before.ends_with(is_word)
            || (before.is_empty() && clean.ends_with(is_word))
            || after.starts_with(is_word);
        clean.push_str(before);
        clean.push_str(if is_part { name } else { by });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.home(Path::new("/data/people/ann"));
        secrets.user("ann".to_owned());
        secrets.user("root".to_owned());
        secrets.host("db7.example.org".to_owned());
        secrets
    }

    #[test]
    fn people_and_machines_are_not_named() {
        for (text, clean) in [
            ("/data/people/ann/secret project/bin", "~/…"),
            (
                "Java 17 (/data/people/ann/jdk/bin/java): loads",
                "Java 17 (~/…): loads",
            ),
            ("/data/people/ann", "~"),
            ("/data/people/anna/x", "/data/people/anna/x"),
            ("/home/bob/spark/bin, /opt/spark", "~/…, /opt/spark"),
            ("/home/bob", "~"),
            ("denied for user ann: no", "denied for user USER: no"),
            ("on db7.example.org and db7", "on HOST and HOST"),
            (
                "db77 and annex stay, as root does",
                "db77 and annex stay, as root does",
            ),
            ("/srv/ann/spark", "/srv/USER/spark"),
            ("/opt/spark-ann_1", "/opt/spark-ann_1"),
        ] {
            assert_eq!(secrets().redact(text), clean, "{text}");
        }
    }

    #[test]
    fn this_process_has_secrets() {
        let secrets = Secrets::find();
        assert!(!secrets.homes.is_empty());
        let home = secrets.homes[0].clone();
        assert_eq!(secrets.redact(&format!("{home}/a/b")), "~/…");
    }
}
