ALTER TABLE "join_tokens" ADD COLUMN "revoked_at" timestamptz NULL;
CREATE TABLE "agent_sightings" ("id" uuid NOT NULL, "manager" character varying NOT NULL, "agent_id" uuid NOT NULL, "seen_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "agentsighting_manager_agent_id" ON "agent_sightings" ("manager", "agent_id");
CREATE TABLE "cluster_identities" ("id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "ca_fingerprint" character varying NOT NULL, "canary_sealed" bytea NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "cluster_identities_name_key" ON "cluster_identities" ("name");
