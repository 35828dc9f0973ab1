-- plain
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    CAST("events"."place" AS TEXT) COLLATE BINARY AS "item",
    CASE
      WHEN TYPEOF("events"."user") = 'integer'
      OR (
        TYPEOF("events"."user") = 'real'
        AND "events"."user" = CAST("events"."user" AS INTEGER)
      )
      THEN CAST(CAST("events"."user" AS INTEGER) AS TEXT)
      ELSE CHAR(1) || TYPEOF("events"."user") || ':' || CASE TYPEOF("events"."user")
        WHEN 'real'
        THEN TOPSECRET_FLOAT_HEX("events"."user")
        WHEN 'blob'
        THEN HEX("events"."user")
        ELSE CAST("events"."user" AS TEXT)
      END
    END COLLATE BINARY AS "person"
  FROM "public"."visits" AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 201;

-- capped
SELECT
  "choices"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT
    "pairs"."item",
    ROW_NUMBER() OVER (
      PARTITION BY "pairs"."person"
      ORDER BY TOPSECRET_MD5(
        CAST('000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(
          CASE
            WHEN SUBSTR(CAST("pairs"."person" AS TEXT), 1, 6) = 'text:'
            THEN SUBSTR(CAST("pairs"."person" AS TEXT), 7)
            ELSE CAST("pairs"."person" AS TEXT)
          END
        ) AS TEXT) || ':' || CASE
          WHEN SUBSTR(CAST("pairs"."person" AS TEXT), 1, 6) = 'text:'
          THEN SUBSTR(CAST("pairs"."person" AS TEXT), 7)
          ELSE CAST("pairs"."person" AS TEXT)
        END || CAST(LENGTH(CAST("pairs"."item" AS TEXT)) AS TEXT) || ':' || CAST("pairs"."item" AS TEXT) AS BLOB)
      ) ASC, "pairs"."item" ASC
    ) AS "choice"
  FROM (
    SELECT DISTINCT
      CAST("events"."place" AS TEXT) COLLATE BINARY AS "item",
      CASE
        WHEN TYPEOF("events"."user") = 'integer'
        OR (
          TYPEOF("events"."user") = 'real'
          AND "events"."user" = CAST("events"."user" AS INTEGER)
        )
        THEN CAST(CAST("events"."user" AS INTEGER) AS TEXT)
        ELSE CHAR(1) || TYPEOF("events"."user") || ':' || CASE TYPEOF("events"."user")
          WHEN 'real'
          THEN TOPSECRET_FLOAT_HEX("events"."user")
          WHEN 'blob'
          THEN HEX("events"."user")
          ELSE CAST("events"."user" AS TEXT)
        END
      END COLLATE BINARY AS "person"
    FROM "public"."visits" AS "events"
    WHERE
      NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
  ) AS "pairs"
) AS "choices"
WHERE
  "choices"."choice" <= 3
GROUP BY
  "choices"."item"
ORDER BY
  "persons" DESC,
  "choices"."item" ASC
LIMIT 201;

-- several
SELECT
  "choices"."item_1",
  "choices"."item_2",
  COUNT(*) AS "persons"
FROM (
  SELECT
    "pairs"."item_1",
    "pairs"."item_2",
    ROW_NUMBER() OVER (
      PARTITION BY "pairs"."person"
      ORDER BY TOPSECRET_MD5(
        CAST('000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(
          CASE
            WHEN SUBSTR(CAST("pairs"."person" AS TEXT), 1, 6) = 'text:'
            THEN SUBSTR(CAST("pairs"."person" AS TEXT), 7)
            ELSE CAST("pairs"."person" AS TEXT)
          END
        ) AS TEXT) || ':' || CASE
          WHEN SUBSTR(CAST("pairs"."person" AS TEXT), 1, 6) = 'text:'
          THEN SUBSTR(CAST("pairs"."person" AS TEXT), 7)
          ELSE CAST("pairs"."person" AS TEXT)
        END || CAST(LENGTH(CAST("pairs"."item_1" AS TEXT)) AS TEXT) || ':' || CAST("pairs"."item_1" AS TEXT) || CAST(LENGTH(CAST("pairs"."item_2" AS TEXT)) AS TEXT) || ':' || CAST("pairs"."item_2" AS TEXT) AS BLOB)
      ) ASC, "pairs"."item_1" ASC, "pairs"."item_2" ASC
    ) AS "choice"
  FROM (
    SELECT DISTINCT
      CAST("events"."city" AS TEXT) COLLATE BINARY AS "item_1",
      CAST("events"."place" AS TEXT) COLLATE BINARY AS "item_2",
      CASE
        WHEN TYPEOF("events"."user") = 'integer'
        OR (
          TYPEOF("events"."user") = 'real'
          AND "events"."user" = CAST("events"."user" AS INTEGER)
        )
        THEN CAST(CAST("events"."user" AS INTEGER) AS TEXT)
        ELSE CHAR(1) || TYPEOF("events"."user") || ':' || CASE TYPEOF("events"."user")
          WHEN 'real'
          THEN TOPSECRET_FLOAT_HEX("events"."user")
          WHEN 'blob'
          THEN HEX("events"."user")
          ELSE CAST("events"."user" AS TEXT)
        END
      END COLLATE BINARY AS "person"
    FROM "public"."visits" AS "events"
    WHERE
      NOT "events"."city" IS NULL
      AND NOT "events"."place" IS NULL
      AND NOT "events"."user" IS NULL
      AND CAST("events"."city" AS TEXT) COLLATE BINARY IN ('Zürich', 'O''Hare\')
      AND "events"."age" >= 18
      AND "events"."open" = TRUE
  ) AS "pairs"
) AS "choices"
WHERE
  "choices"."choice" <= 3
GROUP BY
  "choices"."item_1",
  "choices"."item_2"
ORDER BY
  "persons" DESC,
  "choices"."item_1" ASC,
  "choices"."item_2" ASC
LIMIT 201;

-- expression
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    CAST(SUBSTRING(CAST("events"."city" AS TEXT) COLLATE BINARY, 1, 2) AS TEXT) COLLATE BINARY AS "item",
    CASE
      WHEN TYPEOF("events"."user") = 'integer'
      OR (
        TYPEOF("events"."user") = 'real'
        AND "events"."user" = CAST("events"."user" AS INTEGER)
      )
      THEN CAST(CAST("events"."user" AS INTEGER) AS TEXT)
      ELSE CHAR(1) || TYPEOF("events"."user") || ':' || CASE TYPEOF("events"."user")
        WHEN 'real'
        THEN TOPSECRET_FLOAT_HEX("events"."user")
        WHEN 'blob'
        THEN HEX("events"."user")
        ELSE CAST("events"."user" AS TEXT)
      END
    END COLLATE BINARY AS "person"
  FROM "public"."visits" AS "events"
  WHERE
    NOT (
      SUBSTRING(CAST("events"."city" AS TEXT) COLLATE BINARY, 1, 2)
    ) IS NULL
    AND NOT "events"."user" IS NULL
    AND (
      TOPSECRET_LOWER(CAST(CAST("events"."city" AS TEXT) COLLATE BINARY AS BLOB)) = 'bonn'
      AND (
        "events"."age" BETWEEN 18 AND 65 OR "events"."age" IS NULL
      )
    )
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 25;
