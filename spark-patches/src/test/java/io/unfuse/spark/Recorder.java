package io.unfuse.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** An agent that remembers what it was told. */
final class Recorder implements Agent.Link {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final List<String> events = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private final List<String> tasks = new ArrayList<>();
    private int flushes;
    private OutputStream copy;

    synchronized void alsoTo(OutputStream stream) {
        copy = stream;
    }

    @Override
    public synchronized void taskStart(int stage, int stageAttempt, long taskAttemptId) {
        tasks.add("start " + stage + "." + stageAttempt + " " + taskAttemptId + " " + Thread.currentThread().getId());
    }

    @Override
    public synchronized void taskEnd() {
        tasks.add("end " + Thread.currentThread().getId());
    }

    @Override
    public synchronized boolean event(byte[] utf8Json) {
        String json = new String(utf8Json, StandardCharsets.UTF_8);
        write(json);
        return events.add(json);
    }

    @Override
    public synchronized void flush(int millis) {
        flushes++;
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
    synchronized List<JsonNode> events(String type) {
        List<JsonNode> found = new ArrayList<>();
        for (String json : events) {
            try {
                JsonNode event = MAPPER.readTree(json);
                if (event.get("type").asText().equals(type)) {
                    found.add(event);
                }
            } catch (IOException e) {
                throw new IllegalStateException("not JSON: " + json, e);
            }
        }
        return found;
    }

    synchronized List<String> logged() {
        return new ArrayList<>(lines);
    }

    synchronized List<String> tasks() {
        return new ArrayList<>(tasks);
    }

    synchronized int flushes() {
        return flushes;
    }

    synchronized void clear() {
        events.clear();
        lines.clear();
        tasks.clear();
    }
}
