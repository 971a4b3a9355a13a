package io.unfuse.spark.patch;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Reports which Python process works for which task: a task calls {@code
 * SparkEnv.createPythonWorker} for a new or an idle process, and the patch passes its result to
 * {@link io.unfuse.spark.events.PythonWorkers}.
 */
final class PythonWorkerPatch implements Patch {
    @Override
    public String[] targets() {
        return new String[] {"org/apache/spark/SparkEnv"};
    }

    @Override
    public MethodVisitor method(
            String owner,
            int access,
            String name,
            String descriptor,
            MethodVisitor next,
            Runnable applied) {
        // The others only fill in parameters.
        if (!name.equals("createPythonWorker") || (access & Opcodes.ACC_SYNCHRONIZED) == 0) {
            return next;
        }
        return new Insertion(next, applied) {
            @Override
            void beforeReturn() {
                mv.visitInsn(Opcodes.DUP);
                call("io/unfuse/spark/events/PythonWorkers", "obtained", "(" + OBJECT + ")V");
            }
        };
    }
}
