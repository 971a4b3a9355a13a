// Names of resources, and of culprits other than queries, for sentences.

const NAMES: Record<string, string> = {
  "External-CPU": "processes outside Spark (CPU)",
  "External-IO": "processes outside Spark (disks)",
  "External-Network": "other network traffic",
  GC_Q: "garbage collection",
  JIT: "just-in-time compilation",
  JVM: "the JVM's other work",
  "Own limit": "the container's own CPU limit",
  Hypervisor: "the hypervisor (steal)",
  Unknown: "unknown",
};

/** The name of a culprit; queries keep their own names. */
export const culpritName = (name: string): string => NAMES[name] ?? name;

const RESOURCES: Record<string, string> = { IO: "disks", CPU: "CPUs", slots: "task slots" };

export const resourceName = (name: string): string => RESOURCES[name] ?? name;

const NAME_BEFORE_NUMBER = new RegExp(`^(${Object.keys(NAMES).join("|")})(?= \\d)`);

/** Replaces a culprit's name at the beginning of a text such as `External-CPU 89%`. */
export const worded = (text: string): string => text.replace(NAME_BEFORE_NUMBER, culpritName);
