//! HotSpot's description of its own structures for debuggers (`gHotSpotVMStructs`). It allows to enable frame pointers
//! without a JVM flag, and to pass the layout of interpreted frames to samplers.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use jni::objects::{JFieldID, JObject};
use jni::signature::{JavaType, Primitive};
use jni::{Env, jni_sig, jni_str};
use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::JavaVM;
use unfuse_profiler::interpreter::Layout;

use crate::code_blobs::{CodeBlobs, CodeHeap};
use crate::memory;

/// The state of PreserveFramePointer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FramePointers {
    /// It is on now.
    On,
    /// The user set the flag; it stays unchanged.
    UsersChoice(bool),
    /// This JVM does not describe its flags in a known way.
    Unknown,
}

/// Enables PreserveFramePointer. Only before the compilers start (Agent_OnLoad).
pub(crate) fn preserve_frame_pointers(vm: *mut JavaVM) -> FramePointers {
    // SAFETY: `vm` is the VM that loads us; see the functions for what they read.
    unsafe { Library::from_vm(vm).and_then(|library| library.flag("PreserveFramePointer")) }
        .map_or(FramePointers::Unknown, Flag::switch_on)
}

/// Makes the compilers treat calls of an empty static method as a use of its arguments, without code for the call. Only
/// before the compilers start (Agent_OnLoad). Returns whether this JVM supports it.
pub(crate) fn make_no_code_of(vm: *mut JavaVM, method: &str) -> bool {
    const FIRST_RELEASE: i32 = 17;
    // SAFETY: `vm` is the VM that loads us; see `flag` for its tables. During Agent_OnLoad no other thread reads flags, and
    // the compilers read the commands afterwards. The text is never freed.
    unsafe {
        let Some(library) = Library::from_vm(vm) else {
            return false;
        };
        let commands = library.flag("CompileCommand");
        let unlock = library.flag("UnlockExperimentalVMOptions");
        let (Some(commands), Some(unlock)) = (commands, unlock) else {
            return false;
        };
        if library.release() < FIRST_RELEASE {
            return false;
        }
        let commands = commands.value.cast::<*const c_char>();
        let given = text(*commands).map_or_else(String::new, |given| format!("{given}\n"));
        // Without `quiet` the JVM prints commands to stdout.
        let Ok(ours) = CString::new(format!("{given}quiet\nblackhole,{method}")) else {
            return false;
        };
        *unlock.value = 1;
        *commands = ours.into_raw();
        true
    }
}

/// Makes the compilers describe every instruction from now on, for the rest of the JVM's life: the code is the same,
/// only its descriptions are more complete. Returns whether they did so before; `None` if that is unknown or not
/// wanted.
pub(crate) fn describe_code(vm: *mut JavaVM) -> Option<bool> {
    // SAFETY: `vm` is the VM that loads us.
    let flag =
        unsafe { Library::from_vm(vm).and_then(|library| library.flag("DebugNonSafepoints")) }?;
    // SAFETY: `value` is the flag's variable, a byte.
    let value = unsafe { AtomicU8::from_ptr(flag.value) };
    if flag.origin & 0xf != 0 && value.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // Each compilation reads it once, at its start; either value is fine.
    Some(value.swap(1, Ordering::Relaxed) != 0)
}

/// The oldest feature release that the agent knows the structures of, and for which the Spark jar is compiled.
const OLDEST_RELEASE: i32 = 11;

/// Checks that the VM is not too old.
///
/// # Errors
/// If it is, with what to do.
pub(crate) fn check_release(jvmti: &Jvmti) -> Result<(), String> {
    // Interface type, then 12 bits of the release: 1 up to Java 8, and the feature release since 9.
    let version = jvmti.get_version_number().unwrap_or(i32::MAX);
    let release = match version >> 16 & 0xfff {
        1 => 8,
        release => release,
    };
    if release < OLDEST_RELEASE {
        return Err(format!(
            "this JVM is Java {release}; use Java {OLDEST_RELEASE} or newer"
        ));
    }
    Ok(())
}

/// Feature release of the VM, such as 17; 0 if unknown.
pub(crate) fn release(vm: *mut JavaVM) -> i32 {
    // SAFETY: `vm` is the VM that loads us.
    unsafe { Library::from_vm(vm).map_or(0, |library| library.release()) }
}

/// Finds the kernel's ids of HotSpot's threads.
pub(crate) struct NativeThreads {
    eetop: JFieldID,
    os_thread: u64,
    thread_id: u64,
}

impl NativeThreads {
    /// `None` if this JVM does not describe them.
    pub(crate) fn new(vm: *mut JavaVM, env: &mut Env<'_>) -> Option<Self> {
        let class = env.find_class(jni_str!("java/lang/Thread")).ok()?;
        let eetop = env
            .get_field_id(class, jni_str!("eetop"), jni_sig!("J"))
            .ok()?;
        // SAFETY: `vm` is the VM that loads us.
        unsafe {
            let library = Library::from_vm(vm)?;
            let offset =
                |kind: &str, name: &str| Some(library.fields(kind)?.get(name)?.offset as u64);
            Some(Self {
                eetop,
                os_thread: offset("JavaThread", "_osthread")
                    .or_else(|| offset("Thread", "_osthread"))?,
                thread_id: offset("OSThread", "_thread_id")?,
            })
        }
    }

    /// The kernel's id of a thread. A thread that ends meanwhile has none, or an unused one.
    pub(crate) fn tid(&self, env: &mut Env<'_>, thread: &JObject<'_>) -> Option<u32> {
        let long = JavaType::Primitive(Primitive::Long);
        // SAFETY: a live thread reference and a field of its class, which is a long.
        let native = unsafe { env.get_field_unchecked(thread, self.eetop, long) };
        let native = native.and_then(|native| native.j()).ok()? as u64;
        if native == 0 {
            return None;
        }
        let os_thread: u64 = memory::word(native.checked_add(self.os_thread)?)?;
        let tid = memory::half_word(os_thread.checked_add(self.thread_id)?)?;
        std::path::Path::new(&format!("/proc/self/task/{tid}"))
            .exists()
            .then_some(tid)
    }
}

/// The data needed to find the frame sizes of compiled code.
pub(crate) fn code_blobs(vm: *mut JavaVM) -> Option<CodeBlobs> {
    // SAFETY: `vm` is the VM that loads us; see `flag` for its tables. Everything they lead to is read through
    // `memory`, which reports missing memory.
    unsafe {
        let library = Library::from_vm(vm)?;
        let offset = |kind: &str, name: &str| Some(library.fields(kind)?.get(name)?.offset as u64);
        let array = memory::word(library.fields("CodeCache")?.get("_heaps")?.address as u64)?;
        let length = offset("GrowableArrayBase", "_len")
            // Its name in JDK 11.
            .or_else(|| offset("GenericGrowableArray", "_len"))?;
        let count = memory::half_word(array + length)?;
        let data = memory::word(array + offset("GrowableArray<int>", "_data")?)?;
        let low = offset("VirtualSpace", "_low")?;
        let high = offset("VirtualSpace", "_high_boundary")?;
        let code = offset("CodeHeap", "_memory")?;
        let segments = offset("CodeHeap", "_segmap")?;
        let shift = offset("CodeHeap", "_log2_segment_size")?;
        let heaps = (0..u64::from(count.min(16))).map_while(|index| {
            let heap = memory::word(data + 8 * index)?;
            Some(CodeHeap {
                low: memory::word(heap + code + low)?,
                high: memory::word(heap + code + high)?,
                segment_map: memory::word(heap + segments + low)?,
                segment_shift: memory::half_word(heap + shift)?.min(20),
            })
        });
        let blob = library.fields("CodeBlob")?;
        let offset = |name: &str| blob.get(name).map(|field| field.offset as u64);
        Some(CodeBlobs {
            heaps: heaps.collect(),
            header: library.type_size("HeapBlock")? as u64,
            code_begin: offset("_code_begin"),
            code_offset: offset("_code_offset"),
            frame_size: offset("_frame_size")?,
        })
    }
}

/// The layout of HotSpot's structures behind interpreted frames; unknown fields are zero.
pub(crate) fn layout(vm: *mut JavaVM) -> Layout {
    // SAFETY: `vm` is the VM that loads us.
    unsafe { Library::from_vm(vm).and_then(|library| library.layout()) }.unwrap_or_default()
}

/// The addresses between which the VM places generated code, once it is initialised.
pub(crate) fn code_cache(vm: *mut JavaVM) -> Option<(u64, u64)> {
    // SAFETY: `vm` is the VM that loads us; the two bounds are words that do not change after start.
    unsafe {
        let fields = Library::from_vm(vm)?.fields("CodeCache")?;
        let bound = |name: &str| {
            let address = fields.get(name)?.address;
            (!address.is_null()).then(|| *address.cast::<u64>())
        };
        let bounds = (bound("_low_bound")?, bound("_high_bound")?);
        (0 < bounds.0 && bounds.0 < bounds.1).then_some(bounds)
    }
}

struct Flag {
    value: *mut u8,
    /// Lowest four bits: the origin of the value, 0 for the default.
    origin: i32,
}

impl Flag {
    fn switch_on(self) -> FramePointers {
        if self.origin & 0xf != 0 {
            // SAFETY: `value` is the flag's variable.
            return FramePointers::UsersChoice(unsafe { *self.value } != 0);
        }
        // SAFETY: a bool of the VM that, during Agent_OnLoad, no other thread reads.
        unsafe { *self.value = 1 };
        FramePointers::On
    }
}

struct Library(*mut c_void);

impl Library {
    /// The library that contains the VM's function table.
    unsafe fn from_vm(vm: *mut JavaVM) -> Option<Self> {
        // SAFETY: dladdr fills `info` for any address; dlopen with NOLOAD only finds what is there.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr((**vm).GetEnv as *const c_void, &mut info) == 0 {
                return None;
            }
            let handle = libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NOW);
            (!handle.is_null()).then_some(Self(handle))
        }
    }

    /// The value of an exported word.
    unsafe fn word(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the symbols asked for are exported 64-bit variables.
        unsafe {
            let symbol = libc::dlsym(self.0, name.as_ptr());
            (!symbol.is_null()).then(|| *symbol.cast::<usize>())
        }
    }

    unsafe fn flag(&self, wanted: &str) -> Option<Flag> {
        // SAFETY: offsets and addresses below come from the VM's own tables, which describe exactly
        // these reads; every table is terminated as vmStructs.hpp says.
        unsafe {
            let fields = self.fields("JVMFlag")?;
            let size = self.type_size("JVMFlag")?;
            let flags = *fields.get("flags")?.address.cast::<*const u8>();
            let count = *fields.get("numFlags")?.address.cast::<usize>();
            let name_at = fields.get("_name")?.offset;
            let value_at = fields.get("_addr").or(fields.get("addr"))?.offset;
            let origin_at = fields.get("_flags")?.offset;
            (0..count)
                .map(|index| flags.add(index * size))
                .find_map(|flag| {
                    let name = text(*flag.add(name_at).cast())?;
                    (name == wanted).then(|| Flag {
                        value: *flag.add(value_at).cast(),
                        origin: *flag.add(origin_at).cast(),
                    })
                })
        }
    }

    /// Fields of a type.
    unsafe fn fields(&self, wanted: &str) -> Option<HashMap<&'static str, Field>> {
        // SAFETY: see `flag`.
        unsafe {
            let table = self.word(c"gHotSpotVMStructs")? as *const u8;
            let stride = self.word(c"gHotSpotVMStructEntryArrayStride")?;
            let type_at = self.word(c"gHotSpotVMStructEntryTypeNameOffset")?;
            let field_at = self.word(c"gHotSpotVMStructEntryFieldNameOffset")?;
            let offset_at = self.word(c"gHotSpotVMStructEntryOffsetOffset")?;
            let address_at = self.word(c"gHotSpotVMStructEntryAddressOffset")?;
            let mut fields = HashMap::new();
            let mut entry = table;
            while let Some(owner) = text(*entry.add(type_at).cast()) {
                if owner == wanted
                    && let Some(name) = text(*entry.add(field_at).cast())
                {
                    let offset = *entry.add(offset_at).cast::<u64>() as usize;
                    let address = *entry.add(address_at).cast::<*const u8>();
                    fields.insert(name, Field { offset, address });
                }
                entry = entry.add(stride);
            }
            Some(fields)
        }
    }

    unsafe fn layout(&self) -> Option<Layout> {
        // SAFETY: see `flag`.
        unsafe {
            let method = self.fields("Method")?;
            let constant = self.fields("ConstMethod")?;
            let pool = self.fields("ConstantPool")?;
            let symbol = self.fields("Symbol")?;
            let offset = |fields: &HashMap<&str, Field>, name: &str| {
                fields.get(name).map_or(0, |field| field.offset as u64)
            };
            let flags = constant.get("_flags._flags").or(constant.get("_flags"))?;
            let pool_source = offset(&pool, "_source_file_name_index");
            Some(Layout {
                method_const_method: offset(&method, "_constMethod"),
                const_method_size: self.type_size("ConstMethod")? as u64,
                const_method_constants: offset(&constant, "_constants"),
                const_method_code_size: offset(&constant, "_code_size"),
                const_method_flags: flags.offset as u64,
                const_method_name_index: offset(&constant, "_name_index"),
                const_method_signature_index: offset(&constant, "_signature_index"),
                constant_pool_size: self.type_size("ConstantPool")? as u64,
                constant_pool_holder: offset(&pool, "_pool_holder"),
                constant_pool_source_file: pool_source,
                klass_source_file: offset(
                    &self.fields("InstanceKlass")?,
                    "_source_file_name_index",
                ),
                klass_name: offset(&self.fields("Klass")?, "_name"),
                symbol_length: offset(&symbol, "_length"),
                symbol_body: offset(&symbol, "_body"),
                counters: self
                    .fields("PerfMemory")
                    .and_then(|fields| Some(fields.get("_start")?.address as u64))
                    .unwrap_or_default(),
                number_excess: u8::from(self.release() >= 20),
            })
        }
    }

    /// Feature release of the VM, such as 17; 0 if unknown.
    unsafe fn release(&self) -> i32 {
        // SAFETY: see `flag`.
        unsafe {
            let fields = self.fields("Abstract_VM_Version").unwrap_or_default();
            let major = fields
                .get("_vm_major_version")
                .filter(|field| !field.address.is_null());
            major.map_or(0, |field| *field.address.cast::<i32>())
        }
    }

    unsafe fn type_size(&self, wanted: &str) -> Option<usize> {
        // SAFETY: see `flag`.
        unsafe {
            let mut entry = self.word(c"gHotSpotVMTypes")? as *const u8;
            let stride = self.word(c"gHotSpotVMTypeEntryArrayStride")?;
            let name_at = self.word(c"gHotSpotVMTypeEntryTypeNameOffset")?;
            let size_at = self.word(c"gHotSpotVMTypeEntrySizeOffset")?;
            while let Some(name) = text(*entry.add(name_at).cast()) {
                if name == wanted {
                    return Some(*entry.add(size_at).cast::<u64>() as usize);
                }
                entry = entry.add(stride);
            }
            None
        }
    }
}

struct Field {
    offset: usize,
    address: *const u8,
}

/// A C string of the VM, which lives as long as the VM.
unsafe fn text(chars: *const c_char) -> Option<&'static str> {
    if chars.is_null() {
        return None;
    }
    // SAFETY: the VM's names are NUL-terminated constants.
    let name = unsafe { CStr::from_ptr(chars) };
    Some(name.to_str().unwrap_or_default())
}
