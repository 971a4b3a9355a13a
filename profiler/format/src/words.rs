//! Columns of text that hold one of a few words, and the frames of the JVM's own work.

/// The frame that CPU time of garbage collection has in place of a stack. Headings of such samples have the same name.
pub const GARBAGE_COLLECTION: &str = "garbage collection";
/// The same for just-in-time compilation.
pub const JIT_COMPILATION: &str = "JIT compilation";
/// The same for other operations of the JVM, such as safepoints.
pub const VM_OPERATIONS: &str = "VM operations";

/// Declares an enum that is stored as words. A word that is none of them is read as the variant after `else`: a newer
/// unfuse may write others.
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident else $other:ident {
            $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)+
        }

        impl $name {
            /// The word that it is stored as.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $name {
            /// Its number, for messages between processes of one version.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The word with a number.
            pub fn from_number(number: u8) -> Option<Self> {
                const ALL: &[$name] = &[$($name::$variant,)+];
                ALL.get(usize::from(number)).copied()
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::$other,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$other
            }
        }

        /// As its word, so that ids of stacks stay what they are.
        impl ::std::hash::Hash for $name {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;
                impl ::serde::de::Visitor<'_> for Word {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("a word")
                    }

                    fn visit_str<E>(self, word: &str) -> Result<$name, E> {
                        Ok(word.into())
                    }
                }
                deserializer.deserialize_str(Word)
            }
        }
    };
}

words! {
    /// What a frame of a callchain is.
    pub enum FrameKind else Unknown {
        /// A compiled Java method.
        Java = "java",
        /// A Java method that the interpreter ran.
        Interpreted = "interpreted",
        /// A function of a native library.
        Native = "native",
        /// The kernel.
        Kernel = "kernel",
        /// Code that the JVM generates for itself.
        Stub = "stub",
        /// A function in a Python worker process.
        Python = "python",
        /// No code: a leaf that says what the thread waited for.
        Wait = "wait",
        /// Code without a description, or callers that are unknown.
        Unknown = "unknown",
    }
}

words! {
    /// What a sample says of its thread. Profiles from before waits were recorded have CPU time only.
    pub enum SampleKind else Cpu {
        /// It ran.
        Cpu = "cpu",
        /// It waited.
        OffCpu = "off-cpu",
    }
}

words! {
    /// Where records come from.
    pub enum RecordSourceKind else Other {
        /// A file.
        File = "file",
        /// Another stage's output.
        Shuffle = "shuffle",
        /// A cached RDD.
        Cached = "cached",
        /// Made in place, a database and so on.
        Other = "other",
    }
}

words! {
    /// What identifies the records of a source.
    pub enum RecordIdentity else Position {
        /// Their keys.
        Key = "key",
        /// The whole record.
        Whole = "whole",
        /// Their positions.
        Position = "position",
    }
}
