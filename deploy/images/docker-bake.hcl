# From the repository's root: REGISTRY=registry.example docker buildx bake -f deploy/images/docker-bake.hcl --push
variable "REGISTRY" { default = "registry.example" }
variable "TAG" { default = "0.1.0" }

group "default" { targets = ["head", "rollout", "policy", "learner"] }

target "image" {
  name       = item
  matrix     = { item = ["head", "rollout", "policy", "learner"] }
  context    = "."
  dockerfile = "deploy/images/Dockerfile"
  target     = item
  tags       = ["${REGISTRY}/waymark-${item}:${TAG}"]
}

# The head's image with CUDA, for one machine with GPUs (deploy/compose).
target "machine" {
  context    = "."
  dockerfile = "deploy/images/Dockerfile"
  target     = "head"
  args       = { TORCH_INDEX = "https://pypi.org/simple" }
  tags       = ["${REGISTRY}/waymark-machine:${TAG}"]
}
