package io.unfuse.spark.common;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** An agent that records its calls. */
public final class Recorder implements Agent.Link {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final List<String> events = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private final List<String> tasks = new ArrayList<>();
    private final Map<String, String> sources = new LinkedHashMap<>();
    private int flushes;
    private OutputStream copy;

    /** Replaces the agent. */
    public void listen() {
        Agent.use(this);
    }

    /** Copies its calls to a stream, one event in each line. */
    public synchronized void alsoTo(OutputStream stream) {
        copy = stream;
    }

    @Override
    public synchronized void taskStart(
            int stage, int stageAttempt, long taskAttemptId, long execution) {
        tasks.add(
                "start "
                        + stage
                        + "."
                        + stageAttempt
                        + " "
                        + taskAttemptId
                        + " "
                        + Thread.currentThread().getId());
    }

    @Override
    public synchronized void taskEnd() {
        tasks.add("end " + Thread.currentThread().getId());
    }

    @Override
    public synchronized boolean event(byte[] utf8Json) {
        String json = new String(utf8Json, StandardCharsets.UTF_8);
        write(json);
        if (json.startsWith("{\"type\":\"source\"")) {
            JsonNode source = parse(json);
            sources.put(source.get("hash").asText(), source.get("text").asText());
        }
        return events.add(json);
    }

    @Override
    public synchronized void flush(int millis) {
        flushes++;
    }

    @Override
    public synchronized boolean deliver(int millis, boolean last) {
        return true;
    }

    @Override
    public synchronized void log(String line) {
        write("# " + line);
        lines.add(line);
    }

    private void write(String line) {
        if (copy != null) {
            try {
                copy.write((line + "\n").getBytes(StandardCharsets.UTF_8));
                copy.flush();
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Events of one type, in order. */
    public synchronized List<JsonNode> events(String type) {
        List<JsonNode> found = new ArrayList<>();
        for (String json : events) {
            JsonNode event = parse(json);
            if (event.get("type").asText().equals(type)) {
                found.add(event);
            }
        }
        return found;
    }

    /**
     * All texts ever reported, by hash: a text is reported once, by the first test that needs it.
     */
    public synchronized Map<String, String> sources() {
        return new LinkedHashMap<>(sources);
    }

    private static JsonNode parse(String json) {
        try {
            return MAPPER.readTree(json);
        } catch (IOException e) {
            throw new IllegalStateException("not JSON: " + json, e);
        }
    }

    /** Log lines, which the agent would write to stderr. */
    public synchronized List<String> logged() {
        return new ArrayList<>(lines);
    }

    /** Starts and ends of tasks, with their threads. */
    public synchronized List<String> tasks() {
        return new ArrayList<>(tasks);
    }

    synchronized int flushes() {
        return flushes;
    }

    /** Clears events, log lines and tasks. Keeps the sources and the number of flushes. */
    public synchronized void clear() {
        events.clear();
        lines.clear();
        tasks.clear();
    }
}
