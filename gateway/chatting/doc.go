// Package chatting is the part of a gateway that runs the answers of chats: it takes answers that wait, asks the models with the
// conversation before, and stores the text while it grows. Requests to deployments go through the router that serves models;
// those to endpoints outside the cluster go through the dialer of package egress.
package chatting
