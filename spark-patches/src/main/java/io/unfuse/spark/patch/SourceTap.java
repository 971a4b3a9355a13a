package io.unfuse.spark.patch;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.codehaus.commons.compiler.CompileException;
import org.codehaus.janino.ClassBodyEvaluator;

import java.io.IOException;
import java.io.Writer;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.tools.DiagnosticListener;
import javax.tools.ForwardingJavaFileObject;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;

/**
 * Called between Spark and the compiler of generated code: names the text after its hash, requests
 * line tables, and reports each distinct text once per process. Called from the patched compilers.
 *
 * <p>The hash is that of Spark's class body for both compilers, so it equals the one in the
 * driver's {@code codegen} event. The reported text is the one that the line tables refer to: the
 * body for Janino, the whole compilation unit for the JDK's compiler.
 */
public final class SourceTap {
    private SourceTap() {}

    /**
     * After so many distinct texts the process forgets which ones it has reported: a repeated
     * report does no harm.
     */
    private static final int REMEMBERED = 100_000;

    /** From the hash in a file name to the hash of the text reported under it. */
    private static final Map<String, String> reported = new ConcurrentHashMap<>();

    private static final Pattern INSTANTIATED = Pattern.compile("return new (\\w+)\\(");
    private static final Pattern STAGE_CLASS =
            Pattern.compile("GeneratedIteratorForCodegenStage(\\d+)");

    /** Replaces {@code evaluator.cook(fileName, body)}, for Janino. */
    public static void cook(ClassBodyEvaluator evaluator, String fileName, String body)
            throws CompileException, IOException {
        String ourName = fileName;
        try {
            // Lines and file only: variable tables would cost memory and are not needed.
            evaluator.setDebuggingInformation(true, true, false);
            ourName = "generated_" + report(body, body) + ".java";
            RegionLines.remember(ourName, body);
        } catch (Throwable error) {
            Agent.failed("asking Janino for line tables", error);
        }
        try {
            evaluator.cook(ourName, body);
        } catch (CompileException | RuntimeException error) {
            // The class of Janino's other errors has another package in Spark 3.3, so it has no
            // name here.
            if (!isPoolFull(error) || !restart(evaluator)) {
                throw error;
            }
            // The names of the tables may exceed the limit of entries: compile it as Spark would
            // have.
            evaluator.setDebuggingInformation(false, false, false);
            evaluator.cook(fileName, body);
        }
    }

    /** Makes a failed evaluator usable again: the only way in Janino is to reset its state. */
    private static boolean restart(ClassBodyEvaluator evaluator) {
        try {
            java.lang.reflect.Field inner = ClassBodyEvaluator.class.getDeclaredField("sc");
            inner.setAccessible(true);
            java.lang.reflect.Field begun = inner.getType().getDeclaredField("classFiles");
            begun.setAccessible(true);
            begun.set(inner.get(evaluator), null);
            return true;
        } catch (ReflectiveOperationException | RuntimeException otherJanino) {
            return false;
        }
    }

    /**
     * Replaces {@code compiler.getTask(...)}, for the JDK's compiler.
     *
     * @param code Spark's {@code CodeAndComment}; an Object, so that the patched code needs no cast
     */
    public static JavaCompiler.CompilationTask task(
            JavaCompiler compiler,
            Writer out,
            JavaFileManager files,
            DiagnosticListener<? super JavaFileObject> diagnostics,
            Iterable<String> options,
            Iterable<String> classes,
            Iterable<? extends JavaFileObject> units,
            Object code) {
        Iterable<String> ourOptions = options;
        Iterable<? extends JavaFileObject> ourUnits = units;
        try {
            String body = ((CodeAndComment) code).body();
            JavaFileObject unit = units.iterator().next();
            String text = unit.getCharContent(true).toString();
            String name = "generated_" + report(body, text) + ".java";
            RegionLines.remember(name, text);
            ourUnits = Collections.singletonList(new NamedUnit(unit, name));
            ourOptions = withLines(options);
        } catch (Throwable error) {
            ourOptions = options;
            ourUnits = units;
            Agent.failed("asking the JDK compiler for line tables", error);
        }
        return compiler.getTask(out, files, diagnostics, ourOptions, classes, ourUnits);
    }

    /** First 16 hex digits of the SHA-256 of the text in UTF-8. */
    static String hash(String text) {
        try {
            byte[] digest =
                    MessageDigest.getInstance("SHA-256")
                            .digest(text.getBytes(StandardCharsets.UTF_8));
            StringBuilder hex = new StringBuilder(16);
            for (int i = 0; i < 8; i++) {
                hex.append(Character.forDigit(digest[i] >> 4 & 15, 16))
                        .append(Character.forDigit(digest[i] & 15, 16));
            }
            return hex.toString();
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Emits the {@code source} event, unless this process has already sent it.
     *
     * @return the hash of the text: that of the body, or another one if a different text (from the
     *     other compiler, after a change of {@code spark.sql.codegen.compiler}) already has it
     */
    private static String report(String body, String text) {
        String bodyHash = hash(body);
        String textHash = text == body ? bodyHash : hash(text);
        String hash = bodyHash;
        if (reported.size() > REMEMBERED) {
            reported.clear();
        }
        String before = reported.putIfAbsent(hash, textHash);
        if (before != null && !before.equals(textHash)) {
            hash = hash(bodyHash + textHash);
            before = reported.putIfAbsent(hash, textHash);
        }
        if (before == null && !Agent.event(sourceEvent(hash, bodyHash, body, text))) {
            reported.remove(hash);
        }
        return hash;
    }

    private static Json sourceEvent(String hash, String bodyHash, String body, String text) {
        Matcher instantiated = INSTANTIATED.matcher(body);
        String name = instantiated.find() ? instantiated.group(1) : null;
        Matcher stage = STAGE_CLASS.matcher(name == null ? "" : name);
        return new Json(text.length() + text.length() / 8 + 256)
                .field("type", "source")
                .field("hash", hash)
                .field("class", name)
                .field("codegen_stage", stage.matches() ? Long.valueOf(stage.group(1)) : null)
                .field("body", hash.equals(bodyHash) ? "" : bodyHash)
                .field("text", text);
    }

    private static List<String> withLines(Iterable<String> options) {
        List<String> changed = new ArrayList<>();
        for (String option : options) {
            if (!option.startsWith("-g")) {
                changed.add(option);
            }
        }
        changed.add("-g:source,lines");
        return changed;
    }

    private static boolean isPoolFull(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause.getMessage() != null && cause.getMessage().contains("onstant pool")) {
                return true;
            }
        }
        return false;
    }

    /**
     * A source file with another name: javac takes the SourceFile attribute from the last part of
     * the URI.
     */
    private static final class NamedUnit extends ForwardingJavaFileObject<JavaFileObject> {
        private final URI uri;

        NamedUnit(JavaFileObject unit, String fileName) {
            super(unit);
            uri = unit.toUri().resolve(fileName);
        }

        @Override
        public URI toUri() {
            return uri;
        }

        @Override
        public String getName() {
            return uri.getPath();
        }
    }
}
