"""Parses recipes by the code that reads them in a cluster: Spark's loader of pod templates, and the YAML parser beside it.

Arguments: pod template, SparkApplication, values of a Helm chart. Prints the container, the settings and the values as JSON.
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


def parsed(path):
    with open(path) as file:
        return jvm.org.yaml.snakeyaml.Yaml().load(file.read())


application, worker = parsed(sys.argv[2]), parsed(sys.argv[3])["worker"]
print(
    json.dumps(
        {
            "container": pod.container().getName(),
            "mounts": [mounts[index].getMountPath() for index in range(len(mounts))],
            "volumes": [volume.getName() for volume in pod.pod().getSpec().getVolumes()],
            "worker_mounts": {mount["name"]: mount["mountPath"] for mount in worker["extraVolumeMounts"]},
            "worker_volumes": [volume["name"] for volume in worker["extraVolumes"]],
            "kind": application["kind"],
            "conf": {key: str(value) for key, value in application["spec"]["sparkConf"].items()},
        }
    )
)
client.close()
