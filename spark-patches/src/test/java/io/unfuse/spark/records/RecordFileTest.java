package io.unfuse.spark.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

class RecordFileTest {
    @TempDir Path dir;

    @Test
    void recordsAreForTheirUserOnly() throws IOException {
        Path path = dir.resolve("task-1");
        RecordFile file = new RecordFile(path.toFile());
        file.write(RecordFile.INPUTS, 0, new byte[] {1}, 1);
        assertEquals(
                "rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
        file.close();
        assertEquals(8 + 9 + 1, Files.size(path));
    }

    @Test
    void aLinkIsNotWrittenThrough() throws IOException {
        Path secret = Files.write(dir.resolve("secret"), new byte[] {1});
        Path link = Files.createSymbolicLink(dir.resolve("task-2"), secret);
        RecordFile file = new RecordFile(link.toFile());
        assertThrows(
                FileAlreadyExistsException.class,
                () -> file.write(RecordFile.INPUTS, 0, new byte[] {2}, 1));
        assertEquals(1, Files.readAllBytes(secret)[0]);
    }
}
