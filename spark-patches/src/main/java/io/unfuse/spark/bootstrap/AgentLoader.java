package io.unfuse.spark.bootstrap;

import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.SparkPlugin;

import scala.Tuple2;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * Loads the agent, once in a JVM: unpacks the native parts, starts the profiling processes, and has
 * the agent connect to them. After any failure it prints one line, and the job runs on.
 */
public final class AgentLoader {
    private AgentLoader() {}

    /** Settings with this prefix are the agent's options, such as {@code spark.unfuse.rate}. */
    private static final String PREFIX = "spark.unfuse.";

    /** Where the native parts are unpacked; not an option of the agent. */
    private static final String NATIVE_DIR = "spark.unfuse.native.dir";

    /** Settings that only describe a job ({@code unfuse size}); not options of the agent. */
    private static final List<String> OF_JOB =
            Arrays.asList("spark.unfuse.iterations", "spark.unfuse.bytes");

    /** The option that says where the profile goes, and its default. */
    private static final String DIR = "dir";

    private static final String DEFAULT_DIR = "unfuse-profile";

    /** As the agent tells a URI from a path. */
    private static final Pattern URI = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*:/.*");

    /** Set by the agent to how it was loaded: {@code flag} or {@code plugin}. */
    private static final String AGENT_PROPERTY = "unfuse.agent";

    /** The plugin in the agent's jar, which is in the JVM's class path. */
    private static final String PROFILING_PLUGIN = "io.unfuse.spark.ProfilingPlugin";

    private static final int OLDEST_JAVA = 11;

    private static boolean tried;
    private static SparkPlugin loaded;

    /** The plugin that profiles this driver; null if the driver is not profiled by it. */
    public static SparkPlugin loadInDriver(SparkConf conf) {
        return load(settings(conf), conf.get(NATIVE_DIR, null), runsProgram(conf));
    }

    /**
     * The same for an executor.
     *
     * @param dir where the driver's profile is, see {@link #profileDir}; null if unknown
     */
    public static SparkPlugin loadInExecutor(SparkConf conf, String dir) {
        Map<String, String> settings = settings(conf);
        if ("off".equals(settings.get("executors"))) {
            return null;
        }
        if (dir != null) {
            settings.put(DIR, dir);
        }
        return load(settings, conf.get(NATIVE_DIR, null), false);
    }

    /** Where the driver's profile is; executors have another working directory. */
    public static String profileDir(SparkConf conf) {
        String dir = conf.get(PREFIX + DIR, DEFAULT_DIR);
        return URI.matcher(dir).matches() ? dir : new File(dir).getAbsolutePath();
    }

    /** Whether this driver runs the program again later, for its web pages or its metrics. */
    private static boolean runsProgram(SparkConf conf) {
        boolean hasTab =
                conf.getBoolean("spark.ui.enabled", true)
                        && !"off".equals(conf.get(PREFIX + "ui", "on"));
        return hasTab || !"off".equals(conf.get(PREFIX + "contention", "off"));
    }

    private static Map<String, String> settings(SparkConf conf) {
        Map<String, String> settings = new TreeMap<>();
        for (Tuple2<String, String> setting : conf.getAllWithPrefix(PREFIX)) {
            String name = PREFIX + setting._1();
            if (!name.equals(NATIVE_DIR) && !OF_JOB.contains(name)) {
                settings.put(setting._1(), setting._2());
            }
        }
        return settings;
    }

    private static synchronized SparkPlugin load(
            Map<String, String> settings, String nativeDir, boolean keepsProgram) {
        if (!tried) {
            tried = true;
            try {
                loaded = loadAgent(settings, nativeDir, keepsProgram);
            } catch (NotLoaded refusal) {
                say("not profiling: " + refusal.getMessage());
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                say("not profiling: Spark was interrupted");
            } catch (Throwable error) {
                say("not profiling: " + error);
            }
        }
        return loaded;
    }

    private static SparkPlugin loadAgent(
            Map<String, String> settings, String nativeDir, boolean keepsProgram) throws Exception {
        checkJava(System.getProperty("java.specification.version"));
        checkClassPath();
        String agent = System.getProperty(AGENT_PROPERTY);
        if ("plugin".equals(agent)) {
            // Another class loader of this JVM had the plugin.
            return profilingPlugin();
        }
        if (agent != null || hasFlag()) {
            say("this JVM has -agentpath, whose options count; the settings spark.unfuse.* do not");
            return null;
        }
        List<String> others = NativeParts.otherVersions();
        if (!others.isEmpty()) {
            say(
                    "several versions of the plugin are in the class path: using "
                            + NativeParts.ourJar()
                            + ", not "
                            + String.join(" and ", others)
                            + "; remove one");
        }
        String options = options(settings);
        NativeParts parts = NativeParts.unpack(nativeDir);
        boolean keeps = false;
        try {
            attach(parts, options);
            keeps = keepsProgram;
        } finally {
            if (keeps) {
                parts.deleteAtExit();
            } else {
                parts.delete();
            }
        }
        // With spark.unfuse.spark=off the agent adds no jar.
        return System.getProperty(AGENT_PROPERTY) == null ? null : profilingPlugin();
    }

    private static void attach(NativeParts parts, String options)
            throws IOException, InterruptedException, NotLoaded {
        LaunchProcess launch = new LaunchProcess(parts.program(), options);
        try {
            String recorder = launch.recorder();
            System.load(parts.library().getPath());
            String refusal = NativeParts.attach(options + "," + recorder);
            if (refusal != null) {
                System.clearProperty(AGENT_PROPERTY);
                // A process that failed knows more than the agent, to which it does not answer.
                String reason = launch.refusal();
                throw new NotLoaded(reason == null ? refusal : reason);
            }
        } catch (UnsatisfiedLinkError error) {
            throw new NotLoaded("the agent's library cannot be loaded: " + error.getMessage());
        } finally {
            launch.end();
        }
    }

    static void checkJava(String version) throws NotLoaded {
        // Java 8 calls itself 1.8.
        String release = version.startsWith("1.") ? version.substring(2) : version;
        if (Integer.parseInt(release) < OLDEST_JAVA) {
            throw new NotLoaded(
                    "this JVM is Java " + release + "; use Java " + OLDEST_JAVA + " or newer");
        }
    }

    /** Patched classes of Spark must see the agent's classes, which are in the class path. */
    private static void checkClassPath() throws NotLoaded {
        boolean isThere = false;
        try {
            ClassLoader classPath = ClassLoader.getSystemClassLoader();
            isThere =
                    Class.forName(SparkPlugin.class.getName(), false, classPath)
                            == SparkPlugin.class;
        } catch (ClassNotFoundException error) {
            // The same as another class of that name.
        }
        if (!isThere) {
            throw new NotLoaded(
                    "Spark's classes come from "
                            + SparkPlugin.class.getClassLoader()
                            + "; start the JVM with Spark in its class path");
        }
    }

    private static boolean hasFlag() {
        for (String argument : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (argument.startsWith("-agentpath:") && argument.contains("libunfuse")) {
                return true;
            }
        }
        return false;
    }

    private static SparkPlugin profilingPlugin() throws ReflectiveOperationException {
        ClassLoader classPath = ClassLoader.getSystemClassLoader();
        Class<?> plugin = Class.forName(PROFILING_PLUGIN, true, classPath);
        return (SparkPlugin) plugin.getDeclaredConstructor().newInstance();
    }

    /** The agent's options, {@code key=value,key=value}. */
    static String options(Map<String, String> settings) throws NotLoaded {
        StringJoiner options = new StringJoiner(",");
        for (Map.Entry<String, String> setting : settings.entrySet()) {
            String value = setting.getValue();
            if (value.indexOf(',') >= 0) {
                throw new NotLoaded(
                        PREFIX
                                + setting.getKey()
                                + "="
                                + value
                                + " has a comma; use a value without one");
            }
            options.add(setting.getKey() + "=" + value);
        }
        return options.toString();
    }

    private static void say(String line) {
        System.err.println("unfuse: " + line);
    }
}
