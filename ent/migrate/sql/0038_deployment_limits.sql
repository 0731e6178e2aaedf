ALTER TABLE "deployment_keys" ADD COLUMN "apis" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "resource_policies" ADD COLUMN "max_deployments" bigint NULL;
ALTER TABLE "deployment_keys" ALTER COLUMN "apis" DROP DEFAULT;
