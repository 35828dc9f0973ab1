-- plain
SELECT
  `pairs`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT DISTINCT
    CAST(CAST(`events`.`place` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin AS `item`,
    `events`.`user` AS `person`
  FROM `public`.`visits` AS `events`
  WHERE
    NOT `events`.`place` IS NULL AND NOT `events`.`user` IS NULL
) AS `pairs`
GROUP BY
  `pairs`.`item`
ORDER BY
  `persons` DESC,
  `pairs`.`item` ASC
LIMIT 201;

-- capped
SELECT
  `choices`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT
    `pairs`.`item`,
    ROW_NUMBER() OVER (
      PARTITION BY `pairs`.`person`
      ORDER BY MD5(
        CAST(CONCAT(
          '000102030405060708090a0b0c0d0e0f',
          CAST(CHAR_LENGTH(CAST(`pairs`.`person` AS CHAR)) AS CHAR),
          ':',
          CAST(`pairs`.`person` AS CHAR),
          CAST(CHAR_LENGTH(CAST(`pairs`.`item` AS CHAR)) AS CHAR),
          ':',
          CAST(`pairs`.`item` AS CHAR)
        ) AS CHAR CHARACTER SET utf8mb4)
      ) ASC, `pairs`.`item` ASC
    ) AS `choice`
  FROM (
    SELECT DISTINCT
      CAST(CAST(`events`.`place` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin AS `item`,
      `events`.`user` AS `person`
    FROM `public`.`visits` AS `events`
    WHERE
      NOT `events`.`place` IS NULL AND NOT `events`.`user` IS NULL
  ) AS `pairs`
) AS `choices`
WHERE
  `choices`.`choice` <= 3
GROUP BY
  `choices`.`item`
ORDER BY
  `persons` DESC,
  `choices`.`item` ASC
LIMIT 201;

-- several
SELECT
  `choices`.`item_1`,
  `choices`.`item_2`,
  COUNT(*) AS `persons`
FROM (
  SELECT
    `pairs`.`item_1`,
    `pairs`.`item_2`,
    ROW_NUMBER() OVER (
      PARTITION BY `pairs`.`person`
      ORDER BY MD5(
        CAST(CONCAT(
          '000102030405060708090a0b0c0d0e0f',
          CAST(CHAR_LENGTH(CAST(`pairs`.`person` AS CHAR)) AS CHAR),
          ':',
          CAST(`pairs`.`person` AS CHAR),
          CAST(CHAR_LENGTH(CAST(`pairs`.`item_1` AS CHAR)) AS CHAR),
          ':',
          CAST(`pairs`.`item_1` AS CHAR),
          CAST(CHAR_LENGTH(CAST(`pairs`.`item_2` AS CHAR)) AS CHAR),
          ':',
          CAST(`pairs`.`item_2` AS CHAR)
        ) AS CHAR CHARACTER SET utf8mb4)
      ) ASC, `pairs`.`item_1` ASC, `pairs`.`item_2` ASC
    ) AS `choice`
  FROM (
    SELECT DISTINCT
      CAST(CAST(`events`.`city` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin AS `item_1`,
      CAST(CAST(`events`.`place` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin AS `item_2`,
      `events`.`user` AS `person`
    FROM `public`.`visits` AS `events`
    WHERE
      NOT `events`.`city` IS NULL
      AND NOT `events`.`place` IS NULL
      AND NOT `events`.`user` IS NULL
      AND CAST(CAST(`events`.`city` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin IN ('Zürich', 'O''Hare\\')
      AND `events`.`age` >= 18
      AND `events`.`open` = TRUE
  ) AS `pairs`
) AS `choices`
WHERE
  `choices`.`choice` <= 3
GROUP BY
  `choices`.`item_1`,
  `choices`.`item_2`
ORDER BY
  `persons` DESC,
  `choices`.`item_1` ASC,
  `choices`.`item_2` ASC
LIMIT 201;

-- expression
SELECT
  `pairs`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT DISTINCT
    CAST(EXTRACT(HOUR FROM `events`.`time`) AS SIGNED) AS `item`,
    `events`.`user` AS `person`
  FROM `public`.`visits` AS `events`
  WHERE
    NOT EXTRACT(HOUR FROM `events`.`time`) IS NULL
    AND NOT `events`.`user` IS NULL
    AND (
      LOWER(
        CAST(CAST(`events`.`city` AS CHAR) AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin
      ) = 'bonn'
      AND (
        `events`.`age` BETWEEN 18 AND 65 OR `events`.`age` IS NULL
      )
    )
) AS `pairs`
GROUP BY
  `pairs`.`item`
ORDER BY
  `persons` DESC,
  `pairs`.`item` ASC
LIMIT 25;
