//! The tools that an assistant can call: commands of this program that read a profile.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use unfuse_format::ProfileDir;

use crate::commands::history::profiles_in;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much of an answer is passed on, bytes.
const MOST_BYTES: u64 = 64 << 10;

/// A command as a tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    command: &'static [&'static str],
    arguments: &'static [Argument],
}

/// A value that the assistant gives.
struct Argument {
    name: &'static str,
    description: &'static str,
    /// The option that takes it; none for what stands by itself.
    option: Option<&'static str>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A profile, by its path as listed. The one that stands by itself is required.
    Profile,
    Number,
    OneOf(&'static [&'static str]),
}

const PROFILE: Argument = Argument {
    name: "profile",
    description: "A profile that list_profiles lists",
    option: None,
    kind: Kind::Profile,
};
const QUERY: Argument = Argument {
    name: "query",
    description: "Only this query: the id of a Spark SQL execution",
    option: Some("--query"),
    kind: Kind::Number,
};
const LIST_PROFILES: &str = "list_profiles";

const TOOLS: &[Tool] = &[
    Tool {
        name: LIST_PROFILES,
        description: "The profiles that can be read, a path in each line",
        command: &[],
        arguments: &[],
    },
    Tool {
        name: "list_queries",
        description: "The queries of a profile with their runs, wall time and CPU time",
        command: &["history", "--in"],
        arguments: &[PROFILE],
    },
    Tool {
        name: "top",
        description: "Where the time of an application went, and which operators, lines or methods use most of it",
        command: &["top"],
        arguments: &[
            PROFILE,
            QUERY,
            Argument {
                name: "by",
                description: "What a row stands for",
                option: Some("--by"),
                kind: Kind::OneOf(&["operator", "line", "method", "stage", "query", "thread"]),
            },
            Argument {
                name: "kind",
                description: "CPU time, waiting time, or both",
                option: Some("--kind"),
                kind: Kind::OneOf(&["cpu", "off-cpu", "wall"]),
            },
        ],
    },
    Tool {
        name: "plan",
        description: "The plan of a query, with CPU time, waits, rows and hot lines of each operator",
        command: &["plan"],
        arguments: &[PROFILE, QUERY],
    },
    Tool {
        name: "why",
        description: "Where the wall time of a query went; with another profile or query, why it takes longer than there",
        command: &["why"],
        arguments: &[
            PROFILE,
            QUERY,
            Argument {
                name: "against",
                description: "An earlier profile with the same query",
                option: Some("--against"),
                kind: Kind::Profile,
            },
            Argument {
                name: "against_query",
                description: "An earlier run of the query",
                option: Some("--against-query"),
                kind: Kind::Number,
            },
        ],
    },
    Tool {
        name: "advise",
        description: "What to change so that queries take less time, with the evidence and the seconds that it would save",
        command: &["advise"],
        arguments: &[PROFILE, QUERY],
    },
    Tool {
        name: "blame",
        description: "Which other queries or processes slowed a query down, and by which resource",
        command: &["blame"],
        arguments: &[
            PROFILE,
            Argument {
                name: "victim",
                description: "The query that was slowed down",
                option: Some("--victim"),
                kind: Kind::Number,
            },
        ],
    },
    Tool {
        name: "skew",
        description: "Which tasks are slower than comparable ones, and why",
        command: &["skew"],
        arguments: &[PROFILE],
    },
    Tool {
        name: "source",
        description: "The generated code of a query with its hot lines, and the operator of each region",
        command: &["source"],
        arguments: &[PROFILE, QUERY],
    },
];

/// The tools, for profiles below some directories.
pub(super) struct Tools {
    dirs: Vec<PathBuf>,
}

impl Tools {
    /// # Errors
    /// If a directory cannot be read.
    pub(super) fn new(dirs: &[PathBuf]) -> Result<Self> {
        let resolve = |dir: &PathBuf| {
            dir.canonicalize()
                .with_context(|| format!("cannot read {}", dir.display()))
        };
        let dirs = dirs.iter().map(resolve).collect::<Result<_>>()?;
        Ok(Self { dirs })
    }

    /// What `tools/list` answers.
    pub(super) fn list(&self) -> Value {
        let tool = |tool: &Tool| {
            let properties: Map<String, Value> = tool
                .arguments
                .iter()
                .map(|argument| (argument.name.to_owned(), argument.schema()))
                .collect();
            let required: Vec<&str> = tool
                .arguments
                .iter()
                .filter(|argument| argument.option.is_none())
                .map(|argument| argument.name)
                .collect();
            json!({
                "name": tool.name,
                "description": tool.description,
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
                "inputSchema": {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                },
            })
        };
        TOOLS.iter().map(tool).collect()
    }

    /// Calls a tool, for `tools/call`.
    ///
    /// # Errors
    /// If there is no such tool, or an argument is wrong. What the command itself refuses is an answer.
    pub(super) fn call(&self, params: &Value) -> Result<Value, String> {
        let name = params["name"].as_str().unwrap_or_default();
        let tool = TOOLS
            .iter()
            .find(|tool| tool.name == name)
            .ok_or_else(|| format!("there is no tool {name:?}"))?;
        let arguments = self.arguments(tool, &params["arguments"])?;
        let said = match tool.name {
            LIST_PROFILES => self.profiles(),
            _ => run(tool.command, &arguments),
        };
        let (text, is_error) = match said {
            Ok(text) => (text, false),
            Err(reason) => (format!("{reason:#}"), true),
        };
        Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
    }

    /// The arguments of the command.
    fn arguments(&self, tool: &Tool, given: &Value) -> Result<Vec<String>, String> {
        let nothing = Map::new();
        let given = match given {
            Value::Null => &nothing,
            Value::Object(given) => given,
            _ => return Err("the arguments are no object".to_owned()),
        };
        let known = |name: &String| tool.arguments.iter().any(|argument| argument.name == name);
        if let Some(name) = given.keys().find(|name| !known(name)) {
            return Err(format!("{} has no argument {name:?}", tool.name));
        }
        let mut arguments = Vec::new();
        for argument in tool.arguments {
            let Some(value) = given.get(argument.name) else {
                if argument.option.is_none() {
                    return Err(format!("the argument {:?} is missing", argument.name));
                }
                continue;
            };
            arguments.extend(argument.option.map(str::to_owned));
            arguments.push(self.value(argument, value)?);
        }
        Ok(arguments)
    }

    fn value(&self, argument: &Argument, value: &Value) -> Result<String, String> {
        let wrong = || format!("{:?} cannot be {value}", argument.name);
        match argument.kind {
            Kind::Number => value.as_u64().map(|n| n.to_string()).ok_or_else(wrong),
            Kind::OneOf(values) => {
                let known = value.as_str().filter(|text| values.contains(text));
                known
                    .map(str::to_owned)
                    .ok_or_else(|| format!("{}; it is one of {}", wrong(), values.join(", ")))
            }
            Kind::Profile => {
                let name = value.as_str().ok_or_else(wrong)?;
                self.profile(name).ok_or_else(|| {
                    format!("there is no profile {name:?}; list_profiles lists them")
                })
            }
        }
    }

    /// The path of a profile that is below one of the directories.
    fn profile(&self, name: &str) -> Option<String> {
        let found = self.dirs.iter().find_map(|dir| {
            let path = dir.join(name).canonicalize().ok()?;
            (path.starts_with(dir) && ProfileDir::is_at(&path)).then_some(path)
        });
        found.and_then(|path| path.into_os_string().into_string().ok())
    }

    /// A line for each profile: its path below the directory.
    fn profiles(&self) -> Result<String> {
        let mut text = String::new();
        for dir in &self.dirs {
            for profile in profiles_in(dir)? {
                let name = profile.strip_prefix(dir).unwrap_or(&profile);
                let name = if name == Path::new("") {
                    Path::new(".")
                } else {
                    name
                };
                text += &format!("{}\n", name.display());
            }
        }
        if text.is_empty() {
            text += "There is no profile; `unfuse run` makes one.\n";
        }
        Ok(text)
    }
}

impl Argument {
    /// Its JSON schema.
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Profile => json!({"type": "string"}),
            Kind::Number => json!({"type": "integer", "minimum": 0}),
            Kind::OneOf(values) => json!({"type": "string", "enum": values}),
        };
        schema["description"] = self.description.into();
        schema
    }
}

/// Runs a command of this program; a process of its own, so that nothing in a profile can end the server.
fn run(command: &[&str], arguments: &[String]) -> Result<String> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(command)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (output, errors) = (
        beginning(child.stdout.take()),
        beginning(child.stderr.take()),
    );
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("the profile is too large: there is no answer after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(5));
    };
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        let bytes = reader.join().unwrap_or_default();
        let is_cut = bytes.len() as u64 == MOST_BYTES;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text + if is_cut {
            "\n… the rest is left out\n"
        } else {
            ""
        }
    };
    let (output, errors) = (text(output), text(errors));
    if status.success() || output.len() as u64 > MOST_BYTES {
        Ok(output)
    } else {
        anyhow::bail!("{}", errors.trim())
    }
}

/// Reads the beginning of what a command writes. A command that writes more gets a closed pipe, and ends.
fn beginning(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(MOST_BYTES).read_to_end(&mut bytes);
        }
        bytes
    })
}
