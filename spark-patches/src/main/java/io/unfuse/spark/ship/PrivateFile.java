package io.unfuse.spark.ship;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Files that only the user of this JVM can read. */
public final class PrivateFile {
    private static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private PrivateFile() {}

    /**
     * Creates a file with mode 0600 in a directory that no other user can write to.
     *
     * @throws java.nio.file.FileAlreadyExistsException if the name exists, also as a link
     */
    public static OutputStream create(Path path) throws IOException {
        Files.createFile(path, PRIVATE);
        // Not a channel: interrupting the thread, as Spark does to end a task, would close it.
        return new FileOutputStream(path.toFile());
    }
}
