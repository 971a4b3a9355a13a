package io.unfuse.spark.patch;

import io.unfuse.spark.common.Recorder;

import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Replaces the native agent, with java.lang.instrument: patches the same classes, and keeps the
 * bytes of generated classes for tests. With an argument, events are appended to that file, one in
 * each line, to try the jar on a real spark-submit.
 */
public final class TestAgent {
    private TestAgent() {}

    /** Patched classes, by internal name. */
    static final Map<String, byte[]> PATCHED = new ConcurrentHashMap<>();

    /** Generated classes from the compiler; the latest of each name and hash code. */
    static final Map<String, byte[]> GENERATED = new ConcurrentHashMap<>();

    public static void premain(String arguments, Instrumentation instrumentation)
            throws IOException {
        Set<String> targets = new HashSet<>(Arrays.asList(Patches.targets()));
        if (arguments != null && !arguments.isEmpty()) {
            Recorder recorder = new Recorder();
            recorder.alsoTo(new FileOutputStream(arguments, true));
            recorder.listen();
        }
        instrumentation.addTransformer(
                new ClassFileTransformer() {
                    @Override
                    public byte[] transform(
                            ClassLoader loader,
                            String name,
                            Class<?> redefined,
                            ProtectionDomain domain,
                            byte[] classfile) {
                        if (name == null) {
                            return null;
                        }
                        if (name.startsWith(BoundaryCalls.GENERATED)) {
                            GENERATED.put(name + "@" + Arrays.hashCode(classfile), classfile);
                            return Patches.patch(name, classfile);
                        }
                        if (!targets.contains(name)) {
                            return null;
                        }
                        byte[] patched = Patches.patch(name, classfile);
                        if (patched != null) {
                            PATCHED.put(name, patched);
                        }
                        return patched;
                    }
                });
    }
}
