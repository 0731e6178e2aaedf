ALTER TABLE "agents" ADD COLUMN "overlay" jsonb NOT NULL DEFAULT '{}';
ALTER TABLE "agents" ALTER COLUMN "overlay" DROP DEFAULT;
CREATE TABLE "session_networks" ("id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "vni" bigint NOT NULL, "subnet" character varying NOT NULL, "mtu" bigint NOT NULL, "freed_at" timestamptz NULL, "session_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "session_networks_sessions_networks" FOREIGN KEY ("session_id") REFERENCES "sessions" ("id") ON DELETE CASCADE);
CREATE UNIQUE INDEX "sessionnetwork_vni" ON "session_networks" ("vni") WHERE freed_at IS NULL;
CREATE UNIQUE INDEX "sessionnetwork_subnet" ON "session_networks" ("subnet") WHERE freed_at IS NULL;
CREATE UNIQUE INDEX "sessionnetwork_session_id" ON "session_networks" ("session_id") WHERE freed_at IS NULL;
CREATE INDEX "sessionnetwork_all" ON "session_networks" ("session_id");
CREATE INDEX "sessionnetwork_created_at" ON "session_networks" ("created_at");
