"""Parses recipes by the code that reads them in a cluster: Spark's loader of pod templates, and the YAML parser beside it.

Arguments: pod template, SparkApplication. Prints the container and the settings as JSON.
"""
import json
import sys

from pyspark import SparkConf, SparkContext

SparkContext._ensure_initialized()
jvm = SparkContext._jvm
client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
load = jvm.org.apache.spark.deploy.k8s.KubernetesUtils.loadPodFromTemplate
pod = load(client, sys.argv[1], jvm.scala.Option.apply("spark"), SparkConf()._jconf)
mounts = pod.container().getVolumeMounts()
with open(sys.argv[2]) as file:
    application = jvm.org.yaml.snakeyaml.Yaml().load(file.read())
print(
    json.dumps(
        {
            "container": pod.container().getName(),
            "mounts": [mounts[index].getMountPath() for index in range(len(mounts))],
            "volumes": [volume.getName() for volume in pod.pod().getSpec().getVolumes()],
            "kind": application["kind"],
            "conf": {key: str(value) for key, value in application["spec"]["sparkConf"].items()},
        }
    )
)
client.close()
