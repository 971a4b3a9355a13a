package io.unfuse.spark.records;

import io.unfuse.spark.ship.PrivateFile;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The file in which the records of a task wait for the writer, which converts them to tables:
 * blocks of the kind (1 byte), the number of the source or output (4 bytes) and the length (4
 * bytes), little-endian. The file is created on the first write.
 */
final class RecordFile {
    static final int INPUTS = 1;
    static final int OUTPUTS = 2;

    private static final byte[] MAGIC = "UNFREC2\n".getBytes(StandardCharsets.US_ASCII);

    private final File path;
    private OutputStream out;

    RecordFile(File path) {
        this.path = path;
    }

    String name() {
        return path.getName();
    }

    void write(int kind, int number, byte[] bytes, int length) throws IOException {
        if (out == null) {
            out = PrivateFile.create(path.toPath());
            out.write(MAGIC);
        }
        byte[] head = new byte[9];
        head[0] = (byte) kind;
        for (int i = 0; i < 4; i++) {
            head[1 + i] = (byte) (number >> (8 * i));
            head[5 + i] = (byte) (length >> (8 * i));
        }
        out.write(head);
        out.write(bytes, 0, length);
    }

    void close() throws IOException {
        if (out == null) {
            out = PrivateFile.create(path.toPath());
            out.write(MAGIC);
        }
        out.close();
    }

    void discard() throws IOException {
        if (out != null) {
            try {
                out.close();
            } finally {
                path.delete();
            }
        }
    }

    /** Rows of a source or an output that are being written. */
    static final class Rows {
        private static final int BLOCK = 64 << 10;

        private final RecordFile file;
        private final int kind;
        private final int number;
        private byte[] bytes = new byte[1 << 10];
        private int length;

        /** Rows so far. */
        long count;

        Rows(RecordFile file, int kind, int number) {
            this.file = file;
            this.kind = kind;
            this.number = number;
        }

        /** A non-negative number, seven bits in each byte, the lowest first. */
        void number(long value) {
            room(10);
            while ((value & ~0x7fL) != 0) {
                bytes[length++] = (byte) (value | 0x80);
                value >>>= 7;
            }
            bytes[length++] = (byte) value;
        }

        void id(long value) {
            room(8);
            for (int i = 0; i < 8; i++) {
                bytes[length++] = (byte) (value >> (8 * i));
            }
        }

        /** Ends a row; true if rows were written to the file, which takes a while. */
        boolean endRow() throws IOException {
            count++;
            if (length < BLOCK) {
                return false;
            }
            flush();
            return true;
        }

        void flush() throws IOException {
            if (length > 0) {
                file.write(kind, number, bytes, length);
                length = 0;
            }
        }

        /** Writes the remaining rows; few more will follow, if any. */
        void release() throws IOException {
            flush();
            bytes = new byte[16];
        }

        private void room(int more) {
            if (length + more > bytes.length) {
                bytes = Arrays.copyOf(bytes, 2 * bytes.length);
            }
        }
    }
}
