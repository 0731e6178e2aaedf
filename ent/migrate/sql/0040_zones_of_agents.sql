ALTER TABLE "agents" ADD COLUMN "zone" character varying NOT NULL DEFAULT '';
