// Package distribution knows which agents have which parts of images, and names for each part that an agent
// needs another agent that has it or is fetching it, so that a registry sends about one copy to the cluster.
// The leading manager has this knowledge in memory only: agents report it again to the next leader.
package distribution
