package io.unfuse.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.common.UnfuseProgram;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

class ReportProgramTest {
    @TempDir private Path dir;

    private ReportProgram program(String script) throws IOException {
        Path file = dir.resolve("unfuse");
        Files.writeString(file, "#!/bin/sh\n" + script + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
        return new ReportProgram(new UnfuseProgram(file.toString(), dir.toString()), 1 << 20, 2000);
    }

    private static String failure(ReportProgram program) {
        return assertThrows(UnfuseProgram.Failure.class, () -> program.report("app-1"))
                .getMessage();
    }

    @Test
    void asksForTheApplicationAndKeepsTheAnswer() throws Exception {
        ReportProgram program = program("echo once >> " + dir + "/calls; echo \"<html>$*\"");
        String page = program.report("app-1");
        assertTrue(page.startsWith("<html>report " + dir + " --app=app-1 -o -"), page);
        assertEquals(page, program.report("app-1"));
        assertEquals(1, Files.readAllLines(dir.resolve("calls")).size());
        assertTrue(program.report("app-2").contains("--app=app-2"));
    }

    @Test
    void saysWhatTheProgramSays() throws Exception {
        assertEquals(
                "unfuse: no profile",
                failure(program("echo first >&2; echo 'unfuse: no profile' >&2; exit 1")));
    }

    @Test
    void endsAProgramThatTakesTooLong() throws Exception {
        long start = System.nanoTime();
        String said = failure(program("exec sleep 60"));
        assertTrue(said.contains("more than 2 s"), said);
        assertTrue(System.nanoTime() - start < 20_000_000_000L);
    }

    @Test
    void endsAProgramThatSaysTooMuch() throws Exception {
        String said = failure(program("exec yes"));
        assertTrue(said.contains("larger than 1 MiB"), said);
    }

    @Test
    void aChattyProgramDoesNotWait() throws Exception {
        assertEquals("page\n", program("yes | head -c 300000 >&2; echo page").report("app-1"));
    }

    @Test
    void saysWhereTheProgramBelongs() {
        String said =
                failure(
                        new ReportProgram(
                                new UnfuseProgram("/nowhere/unfuse", "/profile"), 1, 1000));
        assertTrue(said.contains("Put the unfuse program at /nowhere/unfuse"), said);
    }
}
